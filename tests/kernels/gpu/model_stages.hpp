#pragma once
#include <algorithm>
#include <memory>

#include "kernels/gpu/model/gpu_model.hpp"
#include "kernels/gpu/runtime/memory.hpp"
#include "model/state_value.hpp"
#include "tests/kernels/gpu/batch_upload.hpp"
#include "tests/kernels/gpu/element_values.hpp"

namespace skein::test {

/// A GPU's model behind the interface of the other back ends, so that tests can compare them: embed runs all layers,
/// and every answer is waited for. Long runs go in chunks, where the model has them. The first trouble stays.
class model_stages final : public kernels::stages {
 public:
  model_stages(const kernels::model_weights& weights, const kernels::gpu::gpu_options& options,
               const kernels::gpu::model_room& room,
               const kernels::gpu::library_opener& open_library = kernels::gpu::open_matmul_library)
      : upload_(room.rows, std::min(room.slots, room.rows), room.logit_rows),
        model_(kernels::gpu::make_model(weights, options, room, stream_, open_library)),
        format_(layout_of(dims_of(weights)), stored_as(options.state_type)),
        canonical_(format_.bytes()),
        pinned_(std::max(format_.bytes(), room.logit_rows * dims_of(weights).vocab * sizeof(float))) {
    BOOST_REQUIRE_EQUAL(model_->slot_bytes(), format_.bytes());
    kernels::gpu::require(stream_.synchronize());
  }
  ~model_stages() override { ignore(stream_.synchronize(), "the memory that kernels still use goes next"); }

  void embed(const kernels::batch& rows) override {
    std::vector<kernels::sequence_run> runs(rows.runs.begin(), rows.runs.end());
    if (model_->chunk_tokens() > 0) kernels::gpu::chunk_long_runs(runs);
    note(upload_.send_rows({rows.tokens, runs}, stream_));
    note(model_->queue_forward(upload_.on_device(), runs, stream_));
  }
  void time_mix_in(std::uint32_t, const kernels::batch&) override {}
  void time_mix_state(std::uint32_t, const kernels::batch&) override {}
  void time_mix_out(std::uint32_t, const kernels::batch&) override {}
  void channel_mix_in(std::uint32_t, const kernels::batch&) override {}
  void channel_mix_out(std::uint32_t, const kernels::batch&) override {}

  void head(const kernels::batch&, std::span<const std::uint32_t> wanted, std::span<float> logits) override {
    if (wanted.empty()) return;
    note(upload_.send_wanted(wanted, stream_));
    note(model_->queue_head(upload_.on_device(), stream_));
    copy_out(model_->logits(), std::as_writable_bytes(logits));
  }

  std::size_t state_floats() const override { return format_.floats(); }
  void clear_state(slot_id slot) override { note(model_->queue_clear(slot, stream_)); }
  void copy_state(slot_id from, slot_id to) override { note(model_->queue_copy(from, to, stream_)); }
  void read_state(slot_id slot, std::span<float> out) const override {
    model::state_value state{format_, std::vector<std::byte>(format_.bytes())};
    note(model_->queue_read(slot, canonical_.data(), stream_));
    copy_out(canonical_.data(), state.bytes);
    model::copy_state(state.view(), format_.layout, std::as_writable_bytes(out));
  }
  void write_state(slot_id slot, std::span<const float> in) override {
    std::ranges::copy(model::state_of(format_, in).bytes, pinned_.data());
    note(kernels::gpu::copy_to_device(canonical_.data(), pinned_.data(), format_.bytes(), stream_));
    note(model_->queue_write(slot, canonical_.data(), stream_));
    note(stream_.synchronize());
  }

  void parallel_for(std::size_t count, range_body body, void* context) override {
    if (count > 0) body(context, 0, count);
  }
  result<void> status() const override {
    note(stream_.synchronize());
    return trouble_;
  }
  memory_plan memory() const override {
    return {.weight_bytes = model_->weight_bytes(),
            .activation_bytes = model_->activation_bytes(),
            .slot_bytes = model_->slot_bytes()};
  }
  const std::string& library() const { return model_->library(); }

 private:
  void note(const result<void>& done) const {
    if (!done && trouble_) trouble_ = done;
  }
  void copy_out(const void* from, std::span<std::byte> to) const {
    note(kernels::gpu::copy_to_host(pinned_.data(), from, to.size(), stream_));
    note(stream_.synchronize());
    std::copy_n(pinned_.data(), to.size(), to.data());
  }

  mutable result<void> trouble_;
  kernels::gpu::stream stream_;
  kernels::gpu::batch_upload upload_;
  std::unique_ptr<kernels::gpu::gpu_model> model_;
  const model::state_format format_;
  kernels::gpu::device_buffer<std::byte> canonical_;
  kernels::gpu::pinned_buffer<std::byte> pinned_;
};

}  // namespace skein::test
