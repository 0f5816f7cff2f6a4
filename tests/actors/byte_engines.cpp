#include "engine/fake/fake_engine.hpp"
#include "engine/gpu/gpu_engine.hpp"
#include "engine/stages/stage_engine.hpp"
#include "kernels/make_stages.hpp"
#include "tests/actors/engine_bench.hpp"
#include "tests/kernels/random_rwkv7.hpp"
#include "tests/tokenizer/world_lines.hpp"

namespace skein::test {
namespace {

constexpr std::uint32_t vocab = byte_engine::vocab, tick_tokens = 24;

const random_rwkv7& small_model() {
  static const random_rwkv7 model({.layers = 1,
                                   .embd = 64,
                                   .heads = 1,
                                   .head_size = 64,
                                   .ffn = 64,
                                   .vocab = vocab,
                                   .rank_w = 8,
                                   .rank_a = 8,
                                   .rank_v = 8,
                                   .rank_g = 8},
                                  dtype::f32, 1);
  return model;
}

std::unique_ptr<skein::engine::engine> make_fake(std::uint32_t slots, std::uint32_t forced_max) {
  engine::fake_engine_options options;
  options.model.vocab = vocab;
  options.model.first_text_token = 1 + ' ';
  options.model.last_text_token = 1 + '~';
  options.slots = options.max_tick_rows = slots;
  options.max_tick_tokens = tick_tokens;
  options.forced_max = forced_max;
  return engine::make_fake_engine(options);
}

std::unique_ptr<skein::engine::engine> make_cpu(std::uint32_t slots, std::uint32_t forced_max) {
  const kernels::stage_limits limits{.slots = slots, .max_rows = tick_tokens, .max_logit_rows = slots, .threads = 1};
  auto stages = kernels::make_cpu_stages(small_model().weights(), dtype::f32, limits);
  BOOST_REQUIRE(stages.has_value());
  return engine::make_stage_engine(std::move(*stages), {.device = "cpu",
                                                        .model_identity = "random",
                                                        .weight_type = "fp32",
                                                        .state = layout_of(small_model().weights().dims),
                                                        .layers = 1,
                                                        .vocab = vocab,
                                                        .max_tick_rows = slots,
                                                        .forced_max = forced_max,
                                                        .limits = limits});
}

#if defined(SKEIN_GPU_EMULATOR)
std::unique_ptr<skein::engine::engine> make_gpu(std::uint32_t slots, std::uint32_t forced_max) {
  kernels::gpu::gpu_options options;
  options.matrix_type = kernels::gpu::element::f32;
  options.limits.slots = options.limits.max_tick_rows = slots;
  options.limits.max_tick_tokens = tick_tokens;
  options.limits.logit_bias_max = sampling::row_limits{}.logit_bias_max;
  options.limits.stop_ids_max = sampling::row_limits{}.stop_ids_max;
  auto runner = kernels::gpu::make_runner(small_model().weights(), options);
  BOOST_REQUIRE_MESSAGE(runner.has_value(), (runner ? "" : runner.error().message));
  engine::engine_info info;
  info.device = "emulator";
  info.vocab = vocab;
  info.slots = info.max_tick_rows = slots;
  info.max_tick_tokens = tick_tokens;
  info.forced_max = forced_max;
  info.state = test::layout_of(small_model().weights().dims);
  return engine::make_runner_engine(std::move(*runner), std::move(info));
}
#endif

}  // namespace

std::shared_ptr<const tokenizer::vocabulary> byte_engine::words() {
  const auto parsed = tokenizer::vocabulary::parse(single_byte_lines() + world_line(257, "</"), "bytes and an end");
  BOOST_REQUIRE(parsed.has_value());
  return *parsed;
}

const std::vector<byte_engine>& byte_engines() {
  static const std::vector<byte_engine> table = {
    {"fake", make_fake},
    {"cpu", make_cpu},
#if defined(SKEIN_GPU_EMULATOR)
    {"emulated GPU", make_gpu, true},
#endif
  };
  return table;
}

const std::vector<byte_engine>& fast_byte_engines() {
  static const std::vector<byte_engine> table = [] {
    auto all = byte_engines();
    std::erase_if(all, [](const byte_engine& line) { return line.in_part(); });
    return all;
  }();
  return table;
}

}  // namespace skein::test
