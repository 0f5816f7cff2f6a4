#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/check.hpp"
#include "kernels/gpu/sampling/sampling_work.hpp"

namespace skein::kernels::gpu {

namespace {

sampler_limits completed(sampler_limits limits) {
  check(limits.vocab > 0);
  check(limits.vocab <= vocab_max, "the vocabulary is above vocab_max");
  check(limits.slots > 0);
  check(limits.rows_max > 0);
  if (limits.penalties_max == 0 || limits.penalties_max > limits.vocab) limits.penalties_max = limits.vocab;
  limits.penalties_max = (limits.penalties_max + 3) / 4 * 4;  // read in packets of four
  return limits;
}

// The size of `each` entries per slot; never 0, because not every runtime can allocate nothing.
std::size_t in_all_slots(const sampler_limits& limits, std::uint32_t each) {
  return std::size_t{limits.slots} * std::max(each, 1u);
}

// The offsets of the arrays of sampling_scratch, in bytes.
struct scratch_layout {
  std::size_t block_max, block_sum, raw_max, raw_sum, finished, nonfinite, bytes;

  explicit scratch_layout(const sampler_limits& limits) {
    const std::size_t of_blocks = std::size_t{limits.rows_max} * blocks_of(limits.vocab) * sizeof(float);
    block_max = 0;
    block_sum = block_max + of_blocks;
    raw_max = block_sum + of_blocks;
    raw_sum = raw_max + of_blocks;
    finished = raw_sum + of_blocks;
    nonfinite = finished + limits.rows_max * sizeof(std::uint32_t);
    bytes = nonfinite + limits.rows_max * sizeof(std::uint32_t);
  }
};

sampling_scratch scratch_at(std::byte* memory, const scratch_layout& layout) {
  const auto floats = [&](std::size_t offset) { return reinterpret_cast<float*>(memory + offset); };
  const auto words = [&](std::size_t offset) { return reinterpret_cast<std::uint32_t*>(memory + offset); };
  return {words(layout.finished),   words(layout.nonfinite), floats(layout.block_max),
          floats(layout.block_sum), floats(layout.raw_max),  floats(layout.raw_sum)};
}

// The data of one start: record, stop ids, bias.
struct upload_layout {
  std::size_t stop_ids, bias, bytes;

  explicit upload_layout(const sampler_limits& limits) {
    stop_ids = sizeof(slot_record);
    bias = stop_ids + limits.stop_ids_max * sizeof(token_id);
    bytes = (bias + limits.bias_max * sizeof(bias_entry) + 15) / 16 * 16;
  }
};

// The number of starts that can be queued between two ticks, within reason; one more waits for the running ticks.
std::size_t uploads_max(const sampler_limits& limits) { return std::clamp<std::size_t>(limits.slots, 16, 512); }

bool is_aligned(const void* row) { return reinterpret_cast<std::uintptr_t>(row) % 16 == 0; }

}  // namespace

slot_samplers::slot_samplers(const sampler_limits& limits)
    : limits_(completed(limits)),
      records_(limits_.slots),
      bias_(in_all_slots(limits_, limits_.bias_max)),
      stop_ids_(in_all_slots(limits_, limits_.stop_ids_max)),
      penalty_tokens_(in_all_slots(limits_, limits_.penalties_max)),
      penalties_(in_all_slots(limits_, limits_.penalties_max)),
      raw_of_bias_(bias_.size()),
      raw_of_penalties_(penalties_.size()),
      scratch_(scratch_layout(limits_).bytes),
      sent_(uploads_max(limits_)),
      pinned_(sent_.size() * upload_layout(limits_).bytes) {
  const stream in;
  require(fill_with_zeros(records_.data(), records_.bytes(), in));
  require(fill_with_zeros(scratch_.data(), scratch_.bytes(), in));
  require(in.synchronize());
}

slot_memory slot_samplers::memory() const {
  return {records_.data(),      bias_.data(),         stop_ids_.data(),         penalty_tokens_.data(),
          penalties_.data(),    raw_of_bias_.data(),  raw_of_penalties_.data(), limits_.bias_max,
          limits_.stop_ids_max, limits_.penalties_max};
}

std::size_t slot_samplers::slot_bytes(const sampler_limits& limits) {
  const std::size_t bias = std::max(limits.bias_max, 1u), stop_ids = std::max(limits.stop_ids_max, 1u);
  return sizeof(slot_record) + bias * (sizeof(bias_entry) + sizeof(float)) + stop_ids * sizeof(token_id) +
         std::size_t{completed(limits).penalties_max} * (sizeof(token_id) + 2 * sizeof(float));
}

std::size_t slot_samplers::planned_bytes(const sampler_limits& limits) {
  return limits.slots * slot_bytes(limits) + scratch_layout(limits).bytes;
}

std::size_t slot_samplers::bytes() const {
  return records_.bytes() + bias_.bytes() + stop_ids_.bytes() + penalty_tokens_.bytes() + penalties_.bytes() +
         raw_of_bias_.bytes() + raw_of_penalties_.bytes() + scratch_.bytes();
}

result<void> slot_samplers::start(stream_handle in, slot_id slot, const sampler_settings& settings,
                                  std::span<const bias_entry> bias, std::span<const token_id> stop_ids) {
  slot_record record;
  record.settings = settings;
  record.generated = settings.sampled_before;
  return upload(in, slot, record, bias, stop_ids, last_token_of_start::none);
}

result<void> slot_samplers::restart(stream_handle in, slot_id slot, const sampler_settings& settings,
                                    std::span<const bias_entry> bias, std::span<const token_id> stop_ids) {
  slot_record record;
  record.settings = settings;
  record.generated = settings.sampled_before;
  return upload(in, slot, record, bias, stop_ids, last_token_of_start::stays);
}

result<void> slot_samplers::restore(stream_handle in, slot_id slot, const sampler_settings& settings,
                                    std::span<const bias_entry> bias, std::span<const token_id> stop_ids,
                                    const sampler_position& from) {
  slot_record record = *from.record;
  record.settings = settings;
  if (auto r = upload(in, slot, record, bias, stop_ids, last_token_of_start::none); !r) return r;
  return give_penalties(in, slot, from);
}

result<void> slot_samplers::give_penalties(stream_handle in, slot_id slot, const sampler_position& from) {
  check(slot < limits_.slots);
  const std::uint32_t& count = from.record->penalty_count;
  check(count <= from.room);
  check(count <= limits_.penalties_max, "the position has more penalties than a slot holds");
  for (const token_id token : std::span(from.tokens, count)) {
    check(token >= 0);
    check(static_cast<std::uint32_t>(token) < limits_.vocab);
  }
  if (auto r = copy_to_device(&(records_.data() + slot)->penalty_count, &count, sizeof count, in); !r) return r;
  if (count == 0) return {};
  const std::size_t first = std::size_t{slot} * limits_.penalties_max;
  if (auto r = copy_to_device(penalty_tokens_.data() + first, from.tokens, count * sizeof(token_id), in); !r) return r;
  return copy_to_device(penalties_.data() + first, from.penalties, count * sizeof(float), in);
}

result<void> slot_samplers::upload(stream_handle in, slot_id slot, slot_record record, std::span<const bias_entry> bias,
                                   std::span<const token_id> stop_ids, last_token_of_start last_token) {
  check(slot < limits_.slots);
  check(bias.size() <= limits_.bias_max, "more bias entries than a slot holds");
  check(stop_ids.size() <= limits_.stop_ids_max, "more stop ids than a slot holds");
  check(record.settings.top_logprobs <= top_logprobs_most);

  const upload_layout layout(limits_);
  const std::size_t turn = next_upload_++ % sent_.size();
  if (auto r = sent_[turn].synchronize(); !r) return r;  // the previous copy from this place is complete
  std::byte* const at = pinned_.data() + turn * layout.bytes;
  const auto known = [this](const bias_entry& entry) {
    return entry.token >= 0 && static_cast<std::uint32_t>(entry.token) < limits_.vocab;
  };
  auto* const sent_bias = reinterpret_cast<bias_entry*>(at + layout.bias);
  bias_entry* const bias_end = std::ranges::copy_if(bias, sent_bias, known).out;
  // Equal tokens side by side, in their order: sampling adds their biases one after another.
  std::stable_sort(sent_bias, bias_end, [](const bias_entry& a, const bias_entry& b) { return a.token < b.token; });
  record.settings.bias_count = static_cast<std::uint32_t>(bias_end - sent_bias);
  record.settings.stop_count = static_cast<std::uint32_t>(stop_ids.size());
  std::memcpy(at, &record, sizeof record);
  std::ranges::copy(stop_ids, reinterpret_cast<token_id*>(at + layout.stop_ids));

  const std::size_t skipped = last_token == last_token_of_start::stays ? offsetof(slot_record, generated) : 0;
  auto* const target = reinterpret_cast<std::byte*>(records_.data() + slot);
  if (auto r = copy_to_device(target + skipped, at + skipped, sizeof record - skipped, in); !r) return r;
  if (!stop_ids.empty())
    if (auto r = copy_to_device(stop_ids_.data() + std::size_t{slot} * limits_.stop_ids_max, at + layout.stop_ids,
                                stop_ids.size_bytes(), in);
        !r)
      return r;
  if (record.settings.bias_count > 0)
    if (auto r = copy_to_device(bias_.data() + std::size_t{slot} * limits_.bias_max, sent_bias,
                                record.settings.bias_count * sizeof(bias_entry), in);
        !r)
      return r;
  return sent_[turn].record(in);
}

result<void> slot_samplers::copy_position(stream_handle in, slot_id from, slot_id to) {
  check(from < limits_.slots);
  check(to < limits_.slots);
  check(from != to, "a slot is copied to itself");
  return launch_copy_position(in, from, to, memory());
}

result<void> slot_samplers::save(stream_handle in, slot_id slot, const sampler_position& out) const {
  check(slot < limits_.slots);
  if (auto r = copy_to_host(out.record, records_.data() + slot, sizeof(slot_record), in); !r) return r;
  const std::size_t count = std::min(out.room, limits_.penalties_max);
  if (count == 0) return {};
  const std::size_t first = std::size_t{slot} * limits_.penalties_max;
  if (auto r = copy_to_host(out.tokens, penalty_tokens_.data() + first, count * sizeof(token_id), in); !r) return r;
  return copy_to_host(out.penalties, penalties_.data() + first, count * sizeof(float), in);
}

result<void> slot_samplers::queue_samples(stream_handle in, const device_samples& samples, const sample_logits& from,
                                          sampled_token* out) {
  check(samples.room > 0);
  check(samples.room <= limits_.rows_max);
  check(is_aligned(from.logits));
  check(is_aligned(from.raw));
  return launch_samples(in, samples, from, out, memory(), scratch_at(scratch_.data(), scratch_layout(limits_)),
                        limits_.vocab);
}

result<void> slot_samplers::queue_scores(stream_handle in, const device_scores& scores, const float* logits,
                                         token_scores* out) {
  check(scores.room > 0);
  check(scores.room <= limits_.rows_max);
  check(is_aligned(logits));
  return launch_scores(in, scores, logits, out, scratch_at(scratch_.data(), scratch_layout(limits_)), limits_.vocab);
}

result<void> slot_samplers::queue_mixtures(stream_handle in, const device_mixtures& mixtures, const float* logits,
                                           float* penalised, float* raw) {
  check(mixtures.room > 0);
  return launch_mixtures(in, mixtures, logits, penalised, raw, memory(), limits_.vocab);
}

result<void> slot_samplers::force(stream_handle in, std::span<const forced_run> runs) {
  forced_runs some;
  while (!runs.empty()) {
    const std::size_t count = std::min<std::size_t>(runs.size(), forced_runs::most);
    for (std::size_t i = 0; i < count; ++i) {
      check(runs[i].slot < limits_.slots);
      check(runs[i].count <= forced_most);
      some.of[i] = runs[i];
    }
    if (auto r = launch_force(in, some, static_cast<std::uint32_t>(count), memory()); !r) return r;
    runs = runs.subspan(count);
  }
  return {};
}

result<void> slot_samplers::spread_samples(stream_handle in, const device_mixtures& mixtures,
                                           const sampled_token* sampled, sampled_token* out) {
  check(mixtures.room > 0);
  return launch_spread(in, mixtures, sampled, out, memory());
}

}  // namespace skein::kernels::gpu
