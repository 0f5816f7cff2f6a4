// What stages promise besides the equations (versions_test), with small random models of RWKV-7: fresh states, rows of
// the head, shared work, progress and errors.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <vector>

#include "kernels/make_stages.hpp"
#include "model/state_layout.hpp"
#include "tests/kernels/random_rwkv7.hpp"
#include "tests/kernels/stage_runs.hpp"

using namespace skein;
using namespace skein::test;

namespace {

using stages_ptr = std::unique_ptr<kernels::stages>;

//                                layers embd heads size ffn vocab  ranks w a v g
constexpr kernels::model_dims base_dims{3, 64, 1, 64, 256, 100, 16, 16, 8, 24};
constexpr kernels::model_dims odd_dims{2, 72, 9, 8, 101, 33, 3, 5, 1, 9};

stages_ptr make_cpu(const test::random_rwkv7& model, dtype type, std::uint32_t threads = 2) {
  auto made = kernels::make_cpu_stages(model.weights(), type,
                                       {.slots = 5, .max_rows = 80, .max_logit_rows = 80, .threads = threads});
  BOOST_REQUIRE(made.has_value());
  return std::move(*made);
}

stages_ptr make_reference(const test::random_rwkv7& model) {
  auto made = kernels::make_reference_stages(model.weights(), {.slots = 5, .max_rows = 80, .max_logit_rows = 80});
  BOOST_REQUIRE(made.has_value());
  return std::move(*made);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_clear_state_is_the_models_own) {
  for (const bool tuned : {false, true}) {
    const test::random_rwkv7 model(odd_dims, dtype::f32, 11, tuned);
    const model::state_layout layout{odd_dims.layers, odd_dims.embd, odd_dims.heads, odd_dims.head_size};
    std::vector<float> expected(layout.floats(), 0.0f);
    if (tuned) {
      for (std::uint32_t i = 0; i < odd_dims.layers; ++i)
        copy_to_f32(model.weights().layers[i].time_state,
                    std::span(expected).subspan(layout.wkv(i), layout.wkv_floats()));
    }
    for (const auto& stages : {make_cpu(model, dtype::f32), make_reference(model)}) {
      BOOST_TEST(same_bits(state_of(*stages, 1), expected));  // as made
      feed(*stages, odd_dims, 1, {1, 2, 3}, 3);
      BOOST_TEST(!same_bits(state_of(*stages, 1), expected));
      stages->clear_state(1);
      BOOST_TEST(same_bits(state_of(*stages, 1), expected));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_head_answers_wanted_rows_in_any_order) {
  const test::random_rwkv7 model(base_dims, dtype::bf16, 12);
  const auto cpu = make_cpu(model, dtype::bf16);
  const tokens ids = random_tokens(7, base_dims.vocab, 13);
  const auto all = tick(*cpu, base_dims, {{0, ids}});
  const std::vector<kernels::sequence_run> runs{{0, 0, 7}};
  const std::vector<std::uint32_t> wanted{6, 0, 3};
  std::vector<float> some(wanted.size() * base_dims.vocab);
  cpu->head({ids, runs}, wanted, some);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    BOOST_TEST(std::memcmp(&some[i * base_dims.vocab], &all[wanted[i] * base_dims.vocab],
                           base_dims.vocab * sizeof(float)) == 0);
  cpu->head({ids, runs}, {}, {});
}

BOOST_AUTO_TEST_CASE(parallel_for_covers_a_range_once) {
  const test::random_rwkv7 model(odd_dims, dtype::f32, 14);
  for (const auto& stages : {make_cpu(model, dtype::f32, 3), make_reference(model)}) {
    for (const std::size_t count : {0, 1, 5, 1000}) {
      std::vector<int> seen(count, 0);
      stages->parallel_for(
          count,
          [](void* context, std::size_t begin, std::size_t end) {
            for (; begin < end; ++begin) ++(*static_cast<std::vector<int>*>(context))[begin];
          },
          &seen);
      BOOST_TEST(std::count(seen.begin(), seen.end(), 1) == static_cast<std::ptrdiff_t>(count));
    }
  }
}

BOOST_AUTO_TEST_CASE(progress_ends_at_the_total) {
  struct seen {
    std::uint64_t done = 0, total = 0;
    bool in_order = true;
  } progress;
  const test::random_rwkv7 model(odd_dims, dtype::bf16, 15);
  const auto report = [](void* context, std::uint64_t done, std::uint64_t total) {
    auto& last = *static_cast<seen*>(context);
    last.in_order = last.in_order && done >= last.done;
    last.done = done, last.total = total;
  };
  const auto made = kernels::make_cpu_stages(model.weights(), dtype::f32, {}, {report, &progress});
  BOOST_TEST(made.has_value());
  BOOST_TEST(progress.in_order);
  BOOST_TEST(progress.done == progress.total);
  BOOST_TEST(progress.total > 0u);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_had_is_an_error) {
  const test::random_rwkv7 model(odd_dims, dtype::f32, 16);
  const auto quantised = kernels::make_cpu_stages(model.weights(), dtype::i8, {});
  BOOST_TEST((!quantised && quantised.error().kind == error_kind::unsupported));

  auto whole_numbers = model.weights();
  whole_numbers.layers[1].ffn_key.type = dtype::i32;
  BOOST_TEST((kernels::make_cpu_stages(whole_numbers, dtype::f32, {}).error().kind == error_kind::bad_file));
  BOOST_TEST((kernels::make_reference_stages(whole_numbers, {}).error().kind == error_kind::bad_file));

  auto large_heads = model.weights();
  large_heads.dims.head_size = 257;
  BOOST_TEST((kernels::make_cpu_stages(large_heads, dtype::f32, {}).error().kind == error_kind::unsupported));

  auto endless = model.weights();
  endless.dims.ffn = 0x7fffffff;
  const kernels::stage_limits absurd{.slots = 1, .max_rows = 0xffffffff};
  BOOST_TEST((kernels::make_cpu_stages(endless, dtype::f32, absurd).error().kind == error_kind::unavailable));
}
