#pragma once
#include <boost/test/unit_test.hpp>

#include "kernels/make_stages.hpp"
#include "model/state_layout.hpp"
#include "tests/kernels/stage_runs.hpp"

namespace skein::test {

/// Copies a state between slots of a back end, takes it out and puts it in again, and gives it to the reference: all go
/// on alike. Both have fp32 matrices of the same model, and at least five slots.
inline void check_states_move(kernels::stages& ours, kernels::stages& reference, const kernels::model_dims& dims,
                              float tolerance) {
  const tokens ids = random_tokens(20, dims.vocab, 9), more = random_tokens(5, dims.vocab, 10);
  feed(ours, dims, 0, ids, 20);
  const auto state = state_of(ours, 0);
  const model::state_layout layout{dims.layers, dims.embd, dims.heads, dims.head_size, dims.heads == 0 ? dims.embd : 0};
  BOOST_TEST(state.size() == layout.floats());
  BOOST_TEST(reference.state_floats() == layout.floats());

  ours.copy_state(0, 3);
  BOOST_TEST(same_bits(state_of(ours, 3), state));
  ours.write_state(4, state);
  ours.write_state(1, std::vector<float>(state.size(), 1.0f));  // at once: the first may still be on its way
  BOOST_TEST(same_bits(state_of(ours, 4), state));
  reference.write_state(2, state);
  BOOST_TEST(same_bits(state_of(reference, 2), state));

  const auto expected = tick(ours, dims, {{0, more}});
  BOOST_TEST(same_bits(tick(ours, dims, {{3, more}}), expected));
  BOOST_TEST(same_bits(tick(ours, dims, {{4, more}}), expected));
  BOOST_TEST(difference(tick(reference, dims, {{2, more}}), expected) < tolerance);
}

}  // namespace skein::test
