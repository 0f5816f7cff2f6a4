#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "base/check.hpp"
#include "kernels/gpu/sampling/sampling.hpp"
#include "sampling/sampler.hpp"

/// The samplers of a device behind calls of the host, for tests and benches: every call waits.
namespace skein::test {

namespace gpu = kernels::gpu;

[[nodiscard]] inline gpu::sampler_settings settings_of(const sampling::sampling_params& p) {
  return {.temperature = p.temperature,
          .top_p = p.top_p,
          .min_p = p.min_p,
          .noise = p.noise,
          .first_penalty = p.first_penalty,
          .repeat_penalty = p.repeat_penalty,
          .lasting_penalty = p.lasting_penalty,
          .penalty_decay = p.penalty_decay,
          .top_k = p.top_k,
          .max_tokens = p.max_tokens,
          .seed = p.seed,
          .row = p.row,
          .filters_first = p.filters_first,
          .logprobs = p.logprobs,
          .top_logprobs = p.top_logprobs};
}
[[nodiscard]] inline std::vector<gpu::bias_entry> bias_of(const sampling::sampling_params& p) {
  std::vector<gpu::bias_entry> bias;
  for (const auto& entry : p.logit_bias) bias.push_back({entry.token, entry.bias, entry.first, entry.end});
  return bias;
}

/// An array on the device that is written and read as a whole.
template <typename T>
class device_array {
 public:
  explicit device_array(std::size_t count) : device_(count), pinned_(count) {}
  void write(std::span<const T> values, const gpu::stream& in) {
    check(values.size() <= pinned_.size());
    std::ranges::copy(values, pinned_.data());
    gpu::require(gpu::copy_to_device(device_.data(), pinned_.data(), values.size_bytes(), in));
    gpu::require(in.synchronize());
  }
  [[nodiscard]] std::span<const T> read(const gpu::stream& in) {
    gpu::require(gpu::copy_to_host(pinned_.data(), device_.data(), device_.bytes(), in));
    gpu::require(in.synchronize());
    return pinned_.all();
  }
  [[nodiscard]] T* data() const { return device_.data(); }

 private:
  gpu::device_buffer<T> device_;
  gpu::pinned_buffer<T> pinned_;
};

class device_samplers {
 public:
  explicit device_samplers(const gpu::sampler_limits& limits)
      : vocab(limits.vocab),
        samplers(limits),
        logits(std::size_t{limits.rows_max} * limits.vocab),
        allowed(std::size_t{limits.rows_max} * ((limits.vocab + 31) / 32)),
        rows(limits.rows_max),
        count(1),
        out(limits.rows_max) {}

  void start(slot_id slot, const sampling::sampling_params& p) {
    gpu::require(samplers.start(in, slot, settings_of(p), bias_of(p), p.stop_ids));
  }
  /// Draw i: row i of `given`, [draws, vocab]; `masks`, [draws, words], may be empty.
  [[nodiscard]] std::vector<gpu::sampled_token> sample(std::span<const slot_id> slots, std::span<const float> given,
                                                       std::span<const std::uint32_t> masks = {}) {
    std::vector<gpu::sample_row> samples;
    for (std::uint32_t i = 0; i < slots.size(); ++i) samples.push_back({i, slots[i]});
    const auto sampled = static_cast<std::uint32_t>(slots.size());
    rows.write(samples, in);
    count.write(std::span(&sampled, 1), in);
    logits.write(given, in);
    if (!masks.empty()) allowed.write(masks, in);
    gpu::require(samplers.queue_samples(in, {count.data(), rows.data(), sampled},
                                        {logits.data(), nullptr, masks.empty() ? nullptr : allowed.data()},
                                        out.data()));
    const auto all = out.read(in);
    return {all.begin(), all.begin() + sampled};
  }
  [[nodiscard]] gpu::slot_record record(slot_id slot) {
    gpu::pinned_buffer<gpu::slot_record> pinned(1);
    gpu::require(samplers.save(in, slot, {pinned.data(), nullptr, nullptr, 0}));
    gpu::require(in.synchronize());
    return *pinned.data();
  }

  const std::uint32_t vocab;
  gpu::stream in;
  gpu::slot_samplers samplers;
  device_array<float> logits;
  device_array<std::uint32_t> allowed;
  device_array<gpu::sample_row> rows;
  device_array<std::uint32_t> count;
  device_array<gpu::sampled_token> out;
};

/// A sampler's position as the device keeps it, in pinned memory.
class pinned_position {
 public:
  explicit pinned_position(std::uint32_t room) : record_(1), tokens_(room), penalties_(room) {}
  [[nodiscard]] gpu::sampler_position view() const {
    return {record_.data(), tokens_.data(), penalties_.data(), static_cast<std::uint32_t>(tokens_.size())};
  }
  [[nodiscard]] gpu::slot_record& record() const { return *record_.data(); }
  void fill(const sampling::sampler::saved& from) const {
    check(from.penalties.size() <= tokens_.size());
    record() = {};
    record().generated = from.generated;
    for (const auto& [token, penalty] : from.penalties) {
      tokens_.data()[record().penalty_count] = token;
      penalties_.data()[record().penalty_count++] = penalty;
    }
  }
  [[nodiscard]] sampling::sampler::saved saved() const {
    sampling::sampler::saved out{record().generated, {}, nullptr};
    for (std::uint32_t i = 0; i < record().penalty_count; ++i)
      out.penalties.push_back({tokens_.data()[i], penalties_.data()[i]});
    return out;
  }

 private:
  gpu::pinned_buffer<gpu::slot_record> record_;
  gpu::pinned_buffer<token_id> tokens_;
  gpu::pinned_buffer<float> penalties_;
};

}  // namespace skein::test
