// Time to sample one token of the World vocabulary (65536) on one core, by sampler settings and distribution. "model":
// independent normal logits with a few strong ones, similar to a trained model; "flat": all equal, the worst case, in
// which every token ties. The arguments in a name are top_p in percent, then top_k.
#include <benchmark/benchmark.h>

#include <random>

#include "sampling/sampler.hpp"

namespace {

using namespace skein::sampling;

constexpr std::uint32_t vocab = 65536;

std::vector<float> model_logits() {
  std::mt19937 random(7);
  std::normal_distribution<float> bulk(-8, 3);
  std::vector<float> logits(vocab);
  for (float& x : logits) x = bulk(random);
  std::exponential_distribution<float> strong(0.5f);
  for (int i = 0; i < 50; ++i) logits[random() % vocab] = 9 - strong(random);
  return logits;
}

void sample(benchmark::State& state, const std::vector<float>& logits, const sampling_params& params) {
  sampler one(vocab);
  one.start(params);
  for (auto _ : state) benchmark::DoNotOptimize(one.sample(logits));
}

void sample_model(benchmark::State& state) {
  sampling_params params;
  params.top_p = static_cast<float>(state.range(0)) / 100;
  params.top_k = static_cast<std::int32_t>(state.range(1));
  params.first_penalty = 1;
  params.repeat_penalty = 0.1f;
  params.penalty_decay = 0.996f;
  sample(state, model_logits(), params);
}
BENCHMARK(sample_model)
    ->ArgNames({"top_p", "top_k"})
    ->ArgsProduct({{60, 95, 100}, {0, 20, 500, 5000}})
    ->Unit(benchmark::kMicrosecond);

void sample_flat(benchmark::State& state) {
  sampling_params params;
  params.top_p = static_cast<float>(state.range(0)) / 100;
  params.top_k = static_cast<std::int32_t>(state.range(1));
  sample(state, std::vector<float>(vocab, 0.5f), params);
}
BENCHMARK(sample_flat)->ArgNames({"top_p", "top_k"})->ArgsProduct({{50, 100}, {0, 20}})->Unit(benchmark::kMicrosecond);

void sample_greedy(benchmark::State& state) {
  sampling_params params;
  params.temperature = 0;
  sample(state, model_logits(), params);
}
BENCHMARK(sample_greedy)->Unit(benchmark::kMicrosecond);

void sample_masked(benchmark::State& state) {
  sampling_params params;
  params.top_p = 0.6f;
  const auto logits = model_logits();
  const std::vector<std::uint32_t> allowed(vocab / 32, 0x11111111u);
  sampler one(vocab);
  one.start(params);
  for (auto _ : state) benchmark::DoNotOptimize(one.sample(logits, allowed));
}
BENCHMARK(sample_masked)->Unit(benchmark::kMicrosecond);

void logprobs(benchmark::State& state) {
  const auto logits = model_logits();
  const auto top = static_cast<std::uint32_t>(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(log_probabilities(logits, 5, top));
}
BENCHMARK(logprobs)->ArgName("top")->Arg(0)->Arg(20)->Unit(benchmark::kMicrosecond);

}  // namespace
