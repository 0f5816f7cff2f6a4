// Shows that the memory plan of a CPU engine is what the engine then allocates: every operator new and every aligned
// buffer of the process is counted while it is made.
#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "engine/stages/stage_engine.hpp"
#include "kernels/cpu/aligned_buffer.hpp"
#include "kernels/make_stages.hpp"
#include "tests/engine/compare_memory.hpp"
#include "tests/engine/counted_new.hpp"
#include "tests/kernels/random_rwkv7.hpp"

BOOST_AUTO_TEST_CASE(a_plan_is_what_the_cpu_takes) {
  using namespace skein;
  // Widths that are no multiples of panels, lines or huge pages; one matrix above 2 MiB, one below.
  const kernels::model_dims dims{.layers = 3,
                                 .embd = 160,
                                 .heads = 4,
                                 .head_size = 40,
                                 .ffn = 600,
                                 .vocab = 5003,
                                 .rank_w = 24,
                                 .rank_a = 8,
                                 .rank_v = 40,
                                 .rank_g = 72};
  for (const bool with_time_state : {false, true}) {
    const test::random_rwkv7 model(dims, dtype::bf16, 1, with_time_state);
    for (const dtype type : {dtype::f32, dtype::bf16, dtype::f16})
      for (const std::uint32_t slots : {1u, 4u, 33u})
        for (const std::uint32_t rows : {33u, 256u, 1000u})
          BOOST_TEST_CONTEXT(to_string(type) << ", " << slots << " slots, ticks of " << rows) {
            const engine::stage_engine_options options{
                .model_identity = "random",
                .weight_type = "any",
                .state = test::layout_of(dims),
                .layers = dims.layers,
                .vocab = dims.vocab,
                .max_tick_rows = slots,
                .limits = {.slots = slots, .max_rows = rows, .max_logit_rows = std::min(rows, 64u), .threads = 2}};
            const auto of_stages = kernels::plan_cpu_stages(model.weights(), type, options.limits);
            BOOST_REQUIRE(of_stages.has_value());
            const memory_plan planned = engine::plan_stage_engine(*of_stages, options);
            const auto held = [] { return test::held_bytes() + kernels::cpu::zeroed_bytes_held(); };
            const std::size_t before = held();
            auto stages = kernels::make_cpu_stages(model.weights(), type, options.limits);
            BOOST_REQUIRE(stages.has_value());
            const auto e = engine::make_stage_engine(std::move(*stages), options);
            test::compare_memory(planned, e->info().memory, held() - before);
          }
  }
}
