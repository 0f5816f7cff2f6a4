// Time of one sampling launch over the World vocabulary (65536) on a GPU, by batch size and settings. First the tokens
// are compared with those of the host sampler; the program fails if they differ.
//
// Each measurement replays a CUDA graph of copies of fresh logits, each followed by sampling, and a graph of the copies
// alone; the difference is the sampling time. So the logits are where a GEMM would have left them: in L2 if they fit,
// else in HBM. "GB/s" is the bandwidth of reading each logit once in that time.
//
// Usage: gpu_sampling_bench [BATCH ...]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <string>
#include <vector>

#include "tests/kernels/gpu/device_samplers.hpp"

namespace {

using namespace skein;
using namespace skein::test;
using sampling::sampling_params;

constexpr std::uint32_t vocab = 65536;
constexpr std::uint32_t different_rows = 32;
constexpr std::uint32_t rounds = 20;  // per graph

struct dialect {
  const char* name;
  sampling_params params;
  std::uint32_t sampled_before;  // entries in the list of penalties
  bool flat;                     // normal logits of deviation 1: nearly every token is likely
};

std::vector<dialect> dialects() {
  sampling_params whole;
  whole.temperature = 1.1f;
  whole.top_p = 0.9f;
  whole.top_k = 500;
  whole.min_p = 1e-4f;
  whole.first_penalty = 0.5f;
  whole.repeat_penalty = 0.1f;
  whole.penalty_decay = 0.996f;
  whole.max_tokens = 1u << 30;
  for (int i = 0; i < 8; ++i) whole.logit_bias.push_back({1000 * i, 0.5f});
  whole.stop_ids = {0};
  sampling_params whole_with_logprobs = whole;
  whole_with_logprobs.logprobs = true;
  whole_with_logprobs.top_logprobs = 5;
  sampling_params top_p = whole;
  top_p.top_k = 0;
  top_p.min_p = 0;
  top_p.logit_bias.clear();
  sampling_params plain;
  plain.max_tokens = 1u << 30;
  sampling_params greedy = plain;
  greedy.temperature = 0;
  return {{"whole", whole, 500, false},
          {"whole, 5 logprobs", whole_with_logprobs, 500, false},
          {"top_p 0.9", top_p, 500, false},
          {"temperature only", plain, 0, false},
          {"greedy", greedy, 0, false},
          {"whole, flat logits", whole, 500, true},
          {"top_p 0.9, flat logits", top_p, 500, true}};
}

// Similar to those of a trained model: many weak logits and fifty strong ones.
std::vector<float> model_logits(std::uint32_t seed, bool flat) {
  std::mt19937 random(seed);
  std::normal_distribution<float> bulk(flat ? 0 : -8, flat ? 1 : 3);
  std::vector<float> logits(vocab);
  for (float& x : logits) x = bulk(random);
  std::exponential_distribution<float> strong(0.5f);
  for (int i = 0; i < 50 && !flat; ++i) logits[random() % vocab] = 9 - strong(random);
  return logits;
}

class bench {
 public:
  bench(std::uint32_t batch, const dialect& of)
      : batch_(batch),
        dialect_(of),
        device_({.vocab = vocab,
                 .slots = batch,
                 .rows_max = batch,
                 .bias_max = 8,
                 .stop_ids_max = 1,
                 .penalties_max = 8192}),
        fresh_(std::size_t{batch} * vocab) {
    for (std::uint32_t i = 0; i < different_rows; ++i) logits_.push_back(model_logits(i, of.flat));
    device_array<float> row(vocab);
    std::vector<gpu::sample_row> samples;
    for (std::uint32_t i = 0; i < batch; ++i) {
      row.write(logits_[i % different_rows], device_.in);
      gpu::require(
          gpu::copy_on_device(fresh_.data() + std::size_t{i} * vocab, row.data(), vocab * sizeof(float), device_.in));
      samples.push_back({i, i});
    }
    device_.rows.write(samples, device_.in);
    device_.count.write(std::span(&batch_, 1), device_.in);
    start();
  }

  /// Counts sampled tokens that differ from the host's, among `draws` tokens of the first rows.
  std::uint32_t count_differences(std::uint32_t& samples) {
    const std::uint32_t rows = std::min(batch_, different_rows);
    std::vector<sampling::sampler> hosts;
    for (std::uint32_t i = 0; i < rows; ++i) {
      hosts.emplace_back(vocab).start(params(i));
      hosts[i].restore(sampled_before());
    }
    std::uint32_t different = 0;
    std::vector<bool> parted(rows);
    for (int n = 0; n < 10; ++n) {
      queue_copy();
      queue_samples();
      const auto out = device_.out.read(device_.in);
      for (std::uint32_t i = 0; i < rows; ++i) {
        if (parted[i]) continue;
        ++samples;
        parted[i] = hosts[i].sample(logits_[i]).token != out[i].token;
        different += parted[i];
      }
    }
    return different;
  }

  /// Time of one sampling launch.
  double microseconds() {
    start();
    const auto with = [this] { queue_copy(), queue_samples(); };
    const auto without = [this] { queue_copy(); };
    return (time_of(with) - time_of(without)) / rounds;
  }

 private:
  [[nodiscard]] sampling_params params(std::uint32_t slot) const {
    sampling_params own = dialect_.params;
    own.seed = slot;
    return own;
  }
  [[nodiscard]] sampling::sampler::saved sampled_before() const {
    sampling::sampler::saved before;
    for (std::uint32_t i = 0; i < dialect_.sampled_before; ++i)
      before.penalties.push_back({static_cast<token_id>(i * 131 % vocab), 0.3f});
    return before;
  }
  void start() {
    const auto before = sampled_before();
    pinned_position position(static_cast<std::uint32_t>(before.penalties.size()) + 1);
    position.fill(before);
    for (slot_id s = 0; s < batch_; ++s) {
      const sampling_params own = params(s);
      gpu::require(
          device_.samplers.restore(device_.in, s, settings_of(own), bias_of(own), own.stop_ids, position.view()));
    }
    gpu::require(device_.in.synchronize());
  }
  void queue_copy() {
    gpu::require(gpu::copy_on_device(device_.logits.data(), fresh_.data(), fresh_.bytes(), device_.in));
  }
  void queue_samples() {
    gpu::require(device_.samplers.queue_samples(device_.in, {device_.count.data(), device_.rows.data(), batch_},
                                                {device_.logits.data(), nullptr, nullptr}, device_.out.data()));
  }

  /// Microseconds of a graph with `rounds` times `work`, the fastest of 20 replays.
  template <typename Work>
  double time_of(const Work& work) {
    const auto recorded = gpu::graph::record(device_.in, [&]() -> result<void> {
      for (std::uint32_t i = 0; i < rounds; ++i) work();
      return {};
    });
    if (!recorded) throw gpu::device_failure(recorded.error());
    double best = 1e30;
    for (int repeat = 0; repeat < 20; ++repeat) {
      const auto begin = std::chrono::steady_clock::now();
      gpu::require(recorded->launch(device_.in));
      gpu::require(device_.in.synchronize());
      const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
      best = std::min(best, took.count());
    }
    return best;
  }

  const std::uint32_t batch_;
  const dialect dialect_;
  device_samplers device_;
  gpu::device_buffer<float> fresh_;
  std::vector<std::vector<float>> logits_;
};

}  // namespace

int main(int count, char** arguments) try {
  std::vector<std::uint32_t> batches;
  for (int i = 1; i < count; ++i) batches.push_back(static_cast<std::uint32_t>(std::stoul(arguments[i])));
  if (batches.empty()) batches = {1, 32, 320, 960};
  bool all_equal = true;
  std::printf("%-24s %6s %10s %10s %s\n", "settings", "batch", "us", "GB/s", "tokens that differ from the host's");
  for (const dialect& d : dialects())
    for (const std::uint32_t batch : batches) {
      bench one(batch, d);
      std::uint32_t samples = 0;
      const std::uint32_t different = one.count_differences(samples);
      all_equal = all_equal && different * 100 <= samples;  // except within rounding of a boundary
      const double us = one.microseconds();
      const double gigabytes = 4e-9 * vocab * batch;
      std::printf("%-24s %6u %10.1f %10.0f %u of %u\n", d.name, batch, us, gigabytes / us * 1e6, different, samples);
      std::fflush(stdout);
    }
  return all_equal ? 0 : 1;
} catch (const std::exception& trouble) {
  std::fprintf(stderr, "gpu_sampling_bench: %s\n", trouble.what());
  return 1;
}
