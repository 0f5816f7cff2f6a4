#pragma once
#include <boost/test/unit_test.hpp>
#include <memory>
#include <vector>

#include "kernels/make_stages.hpp"
#include "tests/kernels/gpu/device_values.hpp"
#include "tests/kernels/gpu/model_stages.hpp"
#include "tests/kernels/stage_runs.hpp"

/// What tests of whole models on a GPU share.
namespace skein::test {

using stages_ptr = std::unique_ptr<kernels::stages>;

inline constexpr kernels::stage_limits limits{.slots = 5, .max_rows = 80, .max_logit_rows = 80};

inline constexpr kernels::gpu::model_room room{
    .rows = limits.max_rows, .logit_rows = limits.max_logit_rows, .slots = limits.slots};

/// Of outputs and states; fp32 is the same arithmetic in another order.
constexpr float tolerance(element type) { return type == element::f32 ? 2e-5f : type == element::f16 ? 5e-3f : 3e-2f; }

inline stages_ptr make_gpu(const kernels::model_weights& weights, element type, element state_type = element::f32,
                           kernels::gpu::invariance invariance = kernels::gpu::invariance::standard) {
  kernels::gpu::gpu_options options;
  options.matrix_type = type;
  options.state_type = state_type;
  options.invariance = invariance;
  return std::make_unique<model_stages>(weights, options, room);
}

inline stages_ptr make_reference(const kernels::model_weights& weights) {
  auto made = kernels::make_reference_stages(weights, limits);
  BOOST_REQUIRE(made.has_value());
  return std::move(*made);
}

inline void compare_with_the_reference(const kernels::model_weights& weights, element type) {
  const kernels::model_dims& dims = dims_of(weights);
  const auto gpu = make_gpu(weights, type), reference = make_reference(weights);
  const tokens ids = random_tokens(40, dims.vocab, 2);
  const auto got = feed(*gpu, dims, 1, ids, 16), expected = feed(*reference, dims, 1, ids, 40);
  BOOST_TEST_CONTEXT("width " << dims.embd << ", heads of " << dims.head_size << ", type " << static_cast<int>(type)) {
    BOOST_REQUIRE(gpu->status().has_value());
    BOOST_TEST(difference(got, expected) < tolerance(type));
    BOOST_TEST(difference(state_of(*gpu, 1), state_of(*reference, 1)) < tolerance(type));
  }
}

/// Slots are taken in a scattered order. Runs go up to 70 tokens, more than a tile of any kernel.
inline void change_cuts_and_batch(const kernels::model_weights& weights, element type, element state_type) {
  const kernels::model_dims& dims = dims_of(weights);
  const auto gpu = make_gpu(weights, type, state_type, kernels::gpu::invariance::strict);
  std::vector<tokens> ids;
  for (slot_id s = 0; s < limits.slots; ++s) ids.push_back(random_tokens(12 + 7 * s, dims.vocab, 100 + s));
  ids[3] = random_tokens(70, dims.vocab, 4);
  const auto together = feed_in_batch(*gpu, dims, ids, 16, 5);
  std::vector<std::vector<float>> states;
  for (slot_id s = 0; s < limits.slots; ++s) states.push_back(state_of(*gpu, s));
  for (slot_id s = 0; s < limits.slots; ++s) {
    const slot_id elsewhere = (s + 2) % limits.slots;
    for (const std::size_t chunk : {70, 1, 9}) {
      if (chunk == 1 && s > 0) continue;  // slow; the shortest sequence will do
      BOOST_TEST_CONTEXT("slot " << s << ", chunks of " << chunk << ", type " << static_cast<int>(type)) {
        BOOST_TEST(same_bits(feed(*gpu, dims, elsewhere, ids[s], chunk), together[s]));
        BOOST_TEST(same_bits(state_of(*gpu, elsewhere), states[s]));
      }
    }
  }
}

struct crowd {
  std::uint32_t rows, few;  // in a tick, and in a part of it
};

/// A row each of many sequences, in one tick and in ticks of a few; in the end a few after many.
inline void change_a_crowd(const kernels::model_weights& weights, element type, element state_type, const crowd& of) {
  const kernels::model_dims& dims = dims_of(weights);
  kernels::gpu::gpu_options options;
  options.matrix_type = type, options.state_type = state_type;
  const kernels::gpu::model_room many{.rows = of.rows, .logit_rows = of.rows, .slots = of.rows};
  model_stages whole(weights, options, many), pieces(weights, options, many);
  for (std::uint32_t turn = 0; turn < 3; ++turn) {
    const std::uint32_t count = turn < 2 ? of.rows : of.few;
    std::vector<piece> rows;
    for (slot_id s = 0; s < count; ++s)
      rows.push_back({(s * 7) % count, {static_cast<token_id>((s * 11 + turn) % dims.vocab)}});
    const auto together = tick(whole, dims, rows);
    std::vector<float> apart;
    for (std::uint32_t first = 0; first < count; first += of.few) {
      const auto some = tick(pieces, dims, {rows.begin() + first, rows.begin() + first + of.few});
      apart.insert(apart.end(), some.begin(), some.end());
    }
    BOOST_TEST(same_bits(together, apart));
  }
  for (slot_id s = 0; s < of.rows; s += 7) BOOST_TEST(same_bits(state_of(whole, s), state_of(pieces, s)));
}

}  // namespace skein::test
