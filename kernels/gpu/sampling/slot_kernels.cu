// Sampler operations other than sampling: mixtures of states, tokens that are not sampled, and copies of a position.
#include "kernels/gpu/sampling/slot_samples.cuh"

namespace skein::kernels::gpu {

namespace {

// A block mixes one chunk of one group and adds its rows in the order of the plan. As in engine/group_mixer, only
// logits that bias or penalties change are made finite before they are added.
__global__ void __launch_bounds__(mass_threads)
    mixture_kernel(device_mixtures groups, const float* logits, float* penalised, float* raw, slot_memory slots,
                   std::uint32_t vocab) {
  if (blockIdx.y >= *groups.count) return;
  const mixture group = groups.mixtures[blockIdx.y];
  const mixture_member* const members = groups.members + group.first_member;
  const std::uint32_t first = blockIdx.x * logit_chunk_tokens;
  const std::uint32_t tokens = vocab - first < logit_chunk_tokens ? vocab - first : logit_chunk_tokens;
  float* const chunk = dynamic_shared<float>();
  float* const penalised_out = penalised + std::size_t{blockIdx.y} * vocab + first;
  float* const raw_out = raw + std::size_t{blockIdx.y} * vocab + first;
  for (std::uint32_t m = 0; m < group.members; ++m) {
    const mixture_member member = members[m];
    const float* const row = logits + std::size_t{member.logits_row} * vocab + first;
    for (std::uint32_t t = threadIdx.x; t < tokens; t += mass_threads) {
      chunk[t] = row[t];
      raw_out[t] = (m == 0 ? 0.0f : raw_out[t]) + member.share * row[t];
    }
    __syncthreads();
    const auto change = [&](std::uint32_t place, float addend) {
      chunk[place] = finite_logit(finite_logit(chunk[place]) + addend);
    };
    if (member.slot != no_slot) {
      const slot_lists lists(slots, member.slot);
      const slot_record& record = lists.record();
      for_each_change(lists, record, {lists, record.penalty_count, 0}, first, change);
    }
    __syncthreads();
    for (std::uint32_t t = threadIdx.x; t < tokens; t += mass_threads)
      penalised_out[t] = (m == 0 ? 0.0f : penalised_out[t]) + member.share * chunk[t];
  }
}

// A block is one group.
__global__ void __launch_bounds__(mass_threads)
    spread_kernel(device_mixtures groups, const sampled_token* sampled, sampled_token* out, slot_memory slots) {
  if (blockIdx.x >= *groups.count) return;
  const mixture group = groups.mixtures[blockIdx.x];
  const mixture_member* const members = groups.members + group.first_member;
  const sampled_token& token = sampled[blockIdx.x];
  if (members[0].slot == no_slot) return;
  for (std::uint32_t m = 0; m < group.members; ++m) {
    if (threadIdx.x == 0) out[members[m].sample] = token;
    if (m == 0 || token.sampled == 0) continue;
    const slot_lists lists(slots, members[m].slot);
    const slot_record& record = lists.record();
    const listed_token listed =
        decay_penalties(lists, record, {lists, record.penalty_count, record.settings.stop_count}, token.token);
    if (threadIdx.x == 0) accept(lists, record, token.token, listed, token.stopped);
  }
}

// A block is one run.
__global__ void __launch_bounds__(mass_threads) force_kernel(forced_runs runs, slot_memory slots) {
  const forced_run& run = runs.of[blockIdx.x];
  const slot_lists lists(slots, run.slot);
  const slot_record& record = lists.record();
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const listed_token listed =
        decay_penalties(lists, record, {lists, record.penalty_count, record.settings.stop_count}, run.tokens[i]);
    if (threadIdx.x == 0)
      accept(lists, record, run.tokens[i], listed, i + 1 == run.count ? run.stopped : sample_stop::none);
    __syncthreads();
  }
}

__global__ void __launch_bounds__(mass_threads) copy_position_kernel(slot_id from, slot_id to, slot_memory slots) {
  const slot_lists source(slots, from), target(slots, to);
  const std::uint32_t count = source.record().penalty_count;
  for (std::uint32_t i = blockIdx.x * mass_threads + threadIdx.x; i < count; i += gridDim.x * mass_threads) {
    target.penalty_tokens()[i] = source.penalty_tokens()[i];
    target.penalties()[i] = source.penalties()[i];
  }
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  target.record().last_token = source.record().last_token;
  target.record().generated = source.record().generated;
  target.record().frozen = source.record().frozen;
  target.record().penalty_count = count;
}

}  // namespace

result<void> launch_mixtures(stream_handle in, const device_mixtures& mixtures, const float* logits, float* penalised,
                             float* raw, const slot_memory& slots, std::uint32_t vocab) {
  const launch_shape shape{
      "mixture", {chunks_of(vocab), mixtures.room}, {mass_threads}, logit_chunk_tokens * sizeof(float), in};
  return launch(shape, mixture_kernel, mixtures, logits, penalised, raw, slots, vocab);
}

result<void> launch_spread(stream_handle in, const device_mixtures& mixtures, const sampled_token* sampled,
                           sampled_token* out, const slot_memory& slots) {
  return launch({"spread draws", {mixtures.room}, {mass_threads}, 0, in}, spread_kernel, mixtures, sampled, out, slots);
}

result<void> launch_force(stream_handle in, const forced_runs& runs, std::uint32_t count, const slot_memory& slots) {
  return launch({"force tokens", {count}, {mass_threads}, 0, in}, force_kernel, runs, slots);
}

result<void> launch_copy_position(stream_handle in, slot_id from, slot_id to, const slot_memory& slots) {
  return launch({"copy position", {8}, {mass_threads}, 0, in}, copy_position_kernel, from, to, slots);
}

}  // namespace skein::kernels::gpu
