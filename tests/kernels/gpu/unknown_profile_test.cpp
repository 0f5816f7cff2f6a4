// Shows that what is wrong with a device is an error at the interface of the back end, in a plan too, and no exception.
#include <boost/test/unit_test.hpp>
#include <cstdlib>

#include "kernels/gpu/gemm/measure_tiles.hpp"
#include "kernels/gpu/tick/tick_runner.hpp"
#include "tests/kernels/random_rwkv7.hpp"

using namespace skein;
using namespace skein::kernels::gpu;

BOOST_AUTO_TEST_CASE(an_unknown_profile_is_an_error_of_all_calls) {
  BOOST_REQUIRE(::setenv("SKEIN_DEVICE_PROFILE", "none", 1) == 0);  // read at its first use
  const test::random_rwkv7 model({.layers = 1,
                                  .embd = 64,
                                  .heads = 1,
                                  .head_size = 64,
                                  .ffn = 128,
                                  .vocab = 100,
                                  .rank_w = 8,
                                  .rank_a = 8,
                                  .rank_v = 8,
                                  .rank_g = 8},
                                 dtype::bf16, 1);
  gpu_options options;
  options.limits = {.slots = 1, .max_tick_tokens = 8, .max_tick_rows = 1, .max_logit_rows = 1};
  const auto plan = plan_runner(model.weights(), options);
  const auto runner = make_runner(model.weights(), options);
  const auto times = measure_tiles(0, element::bf16);
  BOOST_REQUIRE(!plan.has_value());
  BOOST_REQUIRE(!runner.has_value());
  BOOST_REQUIRE(!times.has_value());
  BOOST_TEST(plan.error().message.starts_with("SKEIN_DEVICE_PROFILE: "), plan.error().message);
  BOOST_TEST(runner.error().message == plan.error().message);
}
