#include "kernels/gpu/model/headed_model.hpp"

#include "kernels/gpu/model/chunk_room.hpp"

namespace skein::kernels::gpu {

namespace {

/// For the current device.
bool can_chunk_wkv(const model_dims& dims, const gpu_options& options, const model_room& room) {
  return wants_chunks(dims, options, room) && chunked_wkv6::available();
}

}  // namespace

headed_model::headed_model(const model_dims& dims, const gpu_options& options, const model_room& room,
                           const library_opener& open_library)
    : gated_model(dims, options, room, open_library) {
  if (can_chunk_wkv(dims_, options, room)) chunks_.emplace(dims_.att(), type_, room.rows, chunked_runs_max(room));
}

memory_plan headed_model::plan(const model_dims& dims, const gpu_options& options, const model_room& room,
                               const library_opener& open_library, std::size_t weight_bytes,
                               std::size_t activation_bytes) {
  if (can_chunk_wkv(dims, options, room))
    activation_bytes += chunked_wkv6::planned_bytes(dims.att(), room.rows, chunked_runs_max(room));
  return base_model::plan(dims, options, room, open_library, weight_bytes, activation_bytes);
}

void headed_model::plan_chunks(std::span<const sequence_run> runs, pass& tick) {
  if (!chunks_ || runs.empty()) return;
  tick.note(chunks_->plan(tick.in, tick.rows, runs));
  tick.has_chunks = chunks_->has_chunks(), tick.has_other_rows = chunks_->has_other_rows();
}

void headed_model::mix_states(std::uint32_t layer, wkv6_parameters of, pass& tick) {
  of.state = state_of(layer), of.slot_bytes = layout_.wkv_bytes(), of.width = dims_.att();
  if (tick.has_chunks) tick.note(chunks_->run(tick.in, layout_.type, of));
  if (tick.has_other_rows) tick.note(wkv6(tick.in, tick.rows, type_, layout_.type, of, dims_.head_size));
}

}  // namespace skein::kernels::gpu
