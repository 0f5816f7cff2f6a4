// Shows that the memory plan of a GPU engine is what the engine then takes of the device: all device memory goes
// through device_buffer, which counts it.
#include <boost/test/unit_test.hpp>

#include "engine/gpu/gpu_engine.hpp"
#include "kernels/gpu/plugin.hpp"
#include "kernels/gpu/runtime/memory.hpp"
#include "tests/engine/compare_memory.hpp"
#include "tests/kernels/random_rwkv7.hpp"
#include "tests/kernels/random_weights.hpp"
#include "tests/support/oracle.hpp"

namespace {

using namespace skein;
using namespace skein::kernels::gpu;

constexpr kernels::model_dims dims_of_64{.layers = 2,
                                         .embd = 128,
                                         .heads = 2,
                                         .head_size = 64,
                                         .ffn = 200,
                                         .vocab = 1003,
                                         .rank_w = 24,
                                         .rank_a = 8,
                                         .rank_v = 40,
                                         .rank_g = 72};

void plan_and_take(const kernels::model_weights& weights, const gpu_options& options) {
  const auto planned = plan_runner(weights, options);
  BOOST_REQUIRE_MESSAGE(planned.has_value(), (planned ? "" : planned.error().message));
  const std::size_t before = device_bytes_held;
  const auto runner = make_runner(weights, options);
  BOOST_REQUIRE_MESSAGE(runner.has_value(), (runner ? "" : runner.error().message));
  test::compare_memory(*planned, (*runner)->sizes().memory, device_bytes_held - before);
}

gpu_options of_sizes(std::uint32_t slots, std::uint32_t tokens, std::uint32_t logit_rows) {
  gpu_options options;
  options.limits = {.slots = slots,
                    .max_tick_tokens = tokens,
                    .max_tick_rows = slots,
                    .max_logit_rows = logit_rows,
                    .logit_bias_max = 30,
                    .stop_ids_max = 5,
                    .state_stages = 3};
  return options;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gpu_memory)

BOOST_AUTO_TEST_CASE(a_plan_is_what_the_device_gives) {
  const test::random_rwkv7 model(dims_of_64, dtype::bf16, 1);
  for (const element type : {element::f32, element::f16, element::bf16})
    for (const element state_type : {element::f32, element::f16})
      for (const invariance level : {invariance::standard, invariance::strict, invariance::fast})
        for (const std::uint32_t slots : {1u, 9u})
          for (const std::uint32_t tokens : {16u, 300u})
            BOOST_TEST_CONTEXT("type " << int(type) << ", states " << int(state_type) << ", level " << int(level)
                                       << ", " << slots << " slots, ticks of " << tokens) {
              gpu_options options = of_sizes(slots, tokens, 8);
              options.matrix_type = type, options.state_type = state_type, options.invariance = level;
              plan_and_take(model.weights(), options);
            }
}

BOOST_AUTO_TEST_CASE(a_plan_knows_heads_of_any_size_and_lists_that_are_empty) {
  kernels::model_dims dims = dims_of_64;
  dims.heads = 4, dims.head_size = 32;
  const test::random_rwkv7 model(dims, dtype::f32, 2, true);
  gpu_options options = of_sizes(40, 700, 256);
  options.limits.logit_bias_max = options.limits.stop_ids_max = 0;
  plan_and_take(model.weights(), options);
}

BOOST_AUTO_TEST_CASE(a_plan_knows_every_version) {
  using version = test::random_weights::version;
  kernels::model_dims dims = dims_of_64;
  dims.rank_x = 9;
  for (const version of : {version::v4, version::v5_1_log, version::v5_2, version::v6})
    BOOST_TEST_CONTEXT("version " << int(of)) {
      const test::random_weights model(of, dims, dtype::bf16, 4, of != version::v4);
      gpu_options options = of_sizes(9, 300, 8);
      options.state_type = element::f16;
      plan_and_take(model.weights(), options);
    }
}

// From the file, with the sizes that the engine itself chooses.
BOOST_AUTO_TEST_CASE(an_engine_s_plan_is_what_it_takes, *boost::unit_test::precondition(test::have_oracle)) {
  constexpr plugin emulated{.abi = plugin_abi,
                            .build = "",
                            .kind = runtime_name,
                            .device_count = &device_count,
                            .describe_device = &describe_device,
                            .make_runner = &make_runner,
                            .plan_runner = &plan_runner,
                            .measure_limits = nullptr,
                            .measure_tiles = nullptr};
  const auto file = model::checkpoint::open(test::oracle() / "models/tiny-7v0-bf16.pth");
  BOOST_REQUIRE(file.has_value());
  const auto info = model::describe(*file);
  BOOST_REQUIRE(info.has_value());
  for (const dtype state_type : {dtype::f32, dtype::f16}) {
    engine::gpu_engine_options options;
    options.state_type = state_type;
    options.slots = 5, options.max_tick_tokens = 100, options.max_tick_rows = 5;
    const auto planned = engine::plan_gpu_engine(emulated, *file, *info, options);
    BOOST_REQUIRE(planned.has_value());
    const std::size_t before = device_bytes_held;
    const auto made = engine::make_gpu_engine(emulated, *file, *info, options);
    BOOST_REQUIRE(made.has_value());
    test::compare_memory(*planned, (*made)->info().memory, device_bytes_held - before);
  }
}

BOOST_AUTO_TEST_CASE(a_plan_refuses_what_cannot_be_made) {
  kernels::model_dims dims = dims_of_64;
  dims.embd = 96, dims.heads = 3, dims.head_size = 32;
  const test::random_rwkv7 model(dims, dtype::f32, 3);
  BOOST_TEST(!plan_runner(model.weights(), {}));
}

BOOST_AUTO_TEST_SUITE_END()
