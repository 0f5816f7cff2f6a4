#include "tests/engine/engine_fixture.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <optional>
#include <ostream>
#include <utility>

#include "engine/fake/fake_engine.hpp"
#include "engine/gpu/gpu_engine.hpp"
#include "engine/stages/stage_engine.hpp"
#include "kernels/make_stages.hpp"
#include "tests/engine/toy_stages.hpp"
#include "tests/kernels/random_rwkv7.hpp"

namespace skein::test {
namespace {

constexpr std::uint32_t few_logit_rows = 3;  // so that most ticks need several pieces of the head

#if !defined(SKEIN_GPU_EMULATOR) || SKEIN_GPU_EMULATOR == 32  // with the other width only the tests that depend on it
#define SKEIN_ENGINES_ON_THE_HOST
#endif

std::unique_ptr<skein::engine::engine> over_stages(const char* device, std::unique_ptr<kernels::stages> stages,
                                                   const kernels::model_dims& dims, const engine_sizes& sizes,
                                                   const kernels::stage_limits& limits) {
  return engine::make_stage_engine(std::move(stages), {.device = device,
                                                       .model_identity = "random",
                                                       .weight_type = "fp32",
                                                       .state = layout_of(dims),
                                                       .layers = dims.layers,
                                                       .vocab = dims.vocab,
                                                       .max_tick_rows = sizes.max_tick_rows,
                                                       .forced_max = sizes.forced_max,
                                                       .limits = limits});
}

#if defined(SKEIN_ENGINES_ON_THE_HOST)
std::unique_ptr<skein::engine::engine> make_toy(const engine_sizes& sizes) {
  const kernels::stage_limits limits{
      .slots = sizes.slots, .max_rows = sizes.max_tick_tokens, .max_logit_rows = few_logit_rows, .threads = 2};
  toy_stages::options how;
  how.limits = limits;
  return engine::make_stage_engine(std::make_unique<toy_stages>(how),
                                   {.device = "toy",
                                    .model_identity = "toy",
                                    .weight_type = "none",
                                    .state = {.layers = toy_stages::layers, .embd = 1},
                                    .layers = toy_stages::layers,
                                    .vocab = how.vocab,
                                    .max_tick_rows = sizes.max_tick_rows,
                                    .forced_max = sizes.forced_max,
                                    .limits = limits});
}

const random_rwkv7& small_model() {
  static const random_rwkv7 model({.layers = 2,
                                   .embd = 32,
                                   .heads = 2,
                                   .head_size = 16,
                                   .ffn = 64,
                                   .vocab = 97,
                                   .rank_w = 8,
                                   .rank_a = 8,
                                   .rank_v = 8,
                                   .rank_g = 8},
                                  dtype::f32, 1);
  return model;
}

std::unique_ptr<skein::engine::engine> make_model(const engine_sizes& sizes, std::optional<dtype> matrix_type) {
  const kernels::rwkv7_weights& weights = small_model().weights();
  const kernels::stage_limits limits{
      .slots = sizes.slots, .max_rows = sizes.max_tick_tokens, .max_logit_rows = few_logit_rows, .threads = 2};
  auto stages = matrix_type ? kernels::make_cpu_stages(weights, *matrix_type, limits)
                            : kernels::make_reference_stages(weights, limits);
  BOOST_REQUIRE(stages.has_value());
  return over_stages("cpu", std::move(*stages), weights.dims, sizes, limits);
}

std::unique_ptr<skein::engine::engine> make_fake(const engine_sizes& sizes) {
  engine::fake_engine_options options;
  options.slots = sizes.slots;
  options.max_tick_tokens = sizes.max_tick_tokens;
  options.max_tick_rows = sizes.max_tick_rows;
  options.forced_max = sizes.forced_max;
  return engine::make_fake_engine(options);
}
#endif

#if defined(SKEIN_GPU_EMULATOR)
const random_rwkv7& small_gpu_model() {
  static const random_rwkv7 model({.layers = 2,
                                   .embd = 64,
                                   .heads = 1,
                                   .head_size = 64,
                                   .ffn = 96,
                                   .vocab = 97,
                                   .rank_w = 8,
                                   .rank_a = 8,
                                   .rank_v = 8,
                                   .rank_g = 8},
                                  dtype::f32, 1);
  return model;
}

std::unique_ptr<skein::engine::engine> make_emulated_gpu(
    const engine_sizes& sizes, kernels::gpu::element type,
    kernels::gpu::element state_type = kernels::gpu::element::f32) {
  const kernels::rwkv7_weights& weights = small_gpu_model().weights();
  kernels::gpu::gpu_options options;
  options.matrix_type = type, options.state_type = state_type;
  options.limits.slots = sizes.slots;
  options.limits.max_tick_tokens = sizes.max_tick_tokens;
  options.limits.max_tick_rows = sizes.max_tick_rows;
  options.limits.max_logit_rows = few_logit_rows;
  options.limits.logit_bias_max = sampling::row_limits{}.logit_bias_max;
  options.limits.stop_ids_max = sampling::row_limits{}.stop_ids_max;
  auto runner = kernels::gpu::make_runner(weights, options);
  BOOST_REQUIRE_MESSAGE(runner.has_value(), (runner ? "" : runner.error().message));
  engine::engine_info info;
  info.device = "emulator";
  info.model_identity = "random";
  info.weight_type = type == kernels::gpu::element::f16 ? "fp16" : "fp32";
  info.vocab = weights.dims.vocab;
  info.slots = sizes.slots;
  info.max_tick_tokens = sizes.max_tick_tokens;
  info.max_tick_rows = sizes.max_tick_rows;
  info.forced_max = sizes.forced_max;
  info.state = {layout_of(weights.dims), state_type == kernels::gpu::element::f16 ? dtype::f16 : dtype::f32};
  return engine::make_runner_engine(std::move(*runner), std::move(info));
}
#endif

}  // namespace

std::ostream& operator<<(std::ostream& out, const engine_under_test& line) { return out << line.name; }

const std::vector<engine_under_test>& engines_under_test() {
  static const std::vector<engine_under_test> table = {
#if !defined(SKEIN_GPU_EMULATOR) || SKEIN_GPU_EMULATOR == 32  // once will do
    {"fake", make_fake},
    {"toy", make_toy},
    {"reference", [](const engine_sizes& sizes) { return make_model(sizes, std::nullopt); }},
    {"cpu fp32", [](const engine_sizes& sizes) { return make_model(sizes, dtype::f32); }},
    {"cpu bf16", [](const engine_sizes& sizes) { return make_model(sizes, dtype::bf16); }},
#endif
#if defined(SKEIN_GPU_EMULATOR)
    {"gpu kernels fp16", [](const engine_sizes& sizes) { return make_emulated_gpu(sizes, kernels::gpu::element::f16); },
     true},
#endif
  };
  return table;
}

#if defined(SKEIN_GPU_EMULATOR)
std::unique_ptr<skein::engine::engine> make_gpu_fp32(const engine_sizes& sizes) {
  return make_emulated_gpu(sizes, kernels::gpu::element::f32);
}

std::unique_ptr<skein::engine::engine> make_gpu_fp16(const engine_sizes& sizes, kernels::gpu::element state_type) {
  return make_emulated_gpu(sizes, kernels::gpu::element::f16, state_type);
}

std::unique_ptr<skein::engine::engine> make_reference_of_gpu(const engine_sizes& sizes) {
  const kernels::rwkv7_weights& weights = small_gpu_model().weights();
  const kernels::stage_limits limits{
      .slots = sizes.slots, .max_rows = sizes.max_tick_tokens, .max_logit_rows = few_logit_rows, .threads = 1};
  auto stages = kernels::make_reference_stages(weights, limits);
  BOOST_REQUIRE(stages.has_value());
  return over_stages("reference", std::move(*stages), weights.dims, sizes, limits);
}
#endif

engine::row& add_prefill(engine::tick_plan& plan, slot_id slot, std::span<const token_id> tokens, bool sample) {
  engine::row& r = plan.rows.emplace_back();
  r.slot = slot;
  r.kind = engine::row_kind::prefill;
  r.first_token = static_cast<std::uint32_t>(plan.tokens.size());
  r.tokens = static_cast<std::uint32_t>(tokens.size());
  r.sample = sample;
  plan.tokens.insert(plan.tokens.end(), tokens.begin(), tokens.end());
  return r;
}

engine::row& add_decode(engine::tick_plan& plan, slot_id slot) {
  engine::row& r = plan.rows.emplace_back();
  r.slot = slot;
  r.sample = true;
  return r;
}

std::vector<engine::row_result> run_tick(skein::engine::engine& e, const engine::tick_plan& plan) {
  const auto tick = e.submit(plan);
  BOOST_REQUIRE(tick.has_value());
  const auto done = e.collect();
  BOOST_REQUIRE(done.has_value());
  BOOST_TEST((*done)->tick == *tick);
  BOOST_REQUIRE((*done)->rows.size() == plan.rows.size());
  return (*done)->rows;
}

engine::row_result prefill(skein::engine::engine& e, slot_id slot, std::span<const token_id> tokens, bool sample) {
  engine::tick_plan plan;
  add_prefill(plan, slot, tokens, sample);
  return run_tick(e, plan).front();
}

engine::row_result decode(skein::engine::engine& e, slot_id slot) {
  engine::tick_plan plan;
  add_decode(plan, slot);
  return run_tick(e, plan).front();
}

std::ostream& operator<<(std::ostream& out, const generated_text& text) {
  for (const token_id t : text.tokens) out << t << ' ';
  return out << "(" << text.logprobs.size() << " logprobs, stop cause " << static_cast<int>(text.stopped) << ")";
}

generated_text generate_alone(skein::engine::engine& e, slot_id slot, std::span<const token_id> prompt,
                              const sampling::sampling_params& params, std::size_t chunk) {
  e.start(slot, params);
  engine::row_result last;
  for (std::size_t at = 0; at < prompt.size(); at += chunk) {
    const auto piece = prompt.subspan(at, std::min(chunk, prompt.size() - at));
    last = prefill(e, slot, piece, at + piece.size() == prompt.size());
  }
  generated_text text;
  while (true) {
    if (last.sampled) text.tokens.push_back(last.token);
    text.tokens.insert(text.tokens.end(), last.forced.begin(), last.forced.end());
    if (last.sampled && params.logprobs) text.logprobs.push_back(last.logprobs.logprob);
    if (last.stopped != engine::stop_cause::none) break;
    last = decode(e, slot);
    BOOST_REQUIRE(!last.frozen);
  }
  text.stopped = last.stopped;
  return text;
}

std::vector<float> state_of(skein::engine::engine& e, slot_id slot) { return floats_of(value_of(e, slot)); }

model::state_value value_of(skein::engine::engine& e, slot_id slot) {
  model::state_value state;
  e.read_state(slot, state);
  BOOST_REQUIRE(e.finish().has_value());
  return state;
}

sampling::sampling_params greedy(std::uint32_t max_tokens) {
  sampling::sampling_params params;
  params.temperature = 0;
  params.max_tokens = max_tokens;
  return params;
}

sampling::sampling_params seeded(std::uint64_t seed, std::uint32_t max_tokens) {
  sampling::sampling_params params;
  params.seed = seed;
  params.max_tokens = max_tokens;
  params.first_penalty = 2.0f;
  params.repeat_penalty = 0.7f;
  params.penalty_decay = 0.9f;
  return params;
}

}  // namespace skein::test
