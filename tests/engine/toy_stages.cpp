#include "tests/engine/toy_stages.hpp"

#include <algorithm>
#include <limits>
#include <thread>

#include "base/check.hpp"

namespace skein::test {
namespace {

constexpr std::uint32_t modulus = 65521;      // below 2^24: exact in fp32
constexpr std::uint32_t steps_per_layer = 5;  // after embed

std::uint32_t scrambled(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352d;
  x = (x ^ (x >> 15)) * 0x846ca68b;
  return x ^ (x >> 16);
}

}  // namespace

toy_stages::toy_stages(const options& how) : how_(how), states_(std::size_t{how.limits.slots} * layers * 2) {
  for (slot_id s = 0; s < how.limits.slots; ++s) clear_state(s);
}

void toy_stages::expect_step(std::uint32_t step) {
  check(step == next_step_, "stages out of order");
  next_step_ = (step + 1) % (layers * steps_per_layer + 1);
}

std::uint32_t& toy_stages::state(slot_id slot, std::uint32_t layer, std::uint32_t which) {
  check(slot < how_.limits.slots);
  return states_[(std::size_t{slot} * layers + layer) * 2 + which];
}

void toy_stages::embed(const kernels::batch& rows) {
  expect_step(0);
  check(!rows.tokens.empty());
  check(rows.tokens.size() <= how_.limits.max_rows);
  std::vector<bool> seen(how_.limits.slots);
  std::uint32_t covered = 0;
  for (const kernels::sequence_run& run : rows.runs) {
    check(run.rows > 0);
    check(run.first_row == covered);
    check(!seen.at(run.slot));
    seen[run.slot] = true;
    covered += run.rows;
  }
  check(covered == rows.tokens.size());

  residual_.clear();
  for (const token_id t : rows.tokens) {
    check(t >= 0 && static_cast<std::uint32_t>(t) < how_.vocab);
    residual_.push_back(scrambled(static_cast<std::uint32_t>(t) + 1) % modulus);
  }
}

void toy_stages::time_mix_in(std::uint32_t layer, const kernels::batch& rows) {
  expect_step(layer * steps_per_layer + 1);
  for (const kernels::sequence_run& run : rows.runs)
    for (std::uint32_t i = run.first_row; i < run.first_row + run.rows; ++i) {
      std::uint32_t& before = state(run.slot, layer, 0);
      const std::uint32_t x = residual_[i];
      residual_[i] = (x + 5 * before) % modulus;
      before = x;
    }
}

void toy_stages::time_mix_state(std::uint32_t layer, const kernels::batch& rows) {
  expect_step(layer * steps_per_layer + 2);
  for (const kernels::sequence_run& run : rows.runs)
    for (std::uint32_t i = run.first_row; i < run.first_row + run.rows; ++i) {
      std::uint32_t& sum = state(run.slot, layer, 1);
      sum = (3 * sum + residual_[i] + layer) % modulus;
      residual_[i] = scrambled(sum) % modulus;
    }
}

void toy_stages::time_mix_out(std::uint32_t layer, const kernels::batch&) { expect_step(layer * steps_per_layer + 3); }
void toy_stages::channel_mix_in(std::uint32_t layer, const kernels::batch&) {
  expect_step(layer * steps_per_layer + 4);
}
void toy_stages::channel_mix_out(std::uint32_t layer, const kernels::batch&) {
  expect_step(layer * steps_per_layer + 5);
}

void toy_stages::head(const kernels::batch& rows, std::span<const std::uint32_t> wanted, std::span<float> logits) {
  check(next_step_ == 0, "head before the last layer");
  check(wanted.size() <= how_.limits.max_logit_rows);
  check(logits.size() == wanted.size() * how_.vocab);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    check(wanted[i] < rows.tokens.size());
    for (std::uint32_t v = 0; v < how_.vocab; ++v) {
      float& logit = logits[i * how_.vocab + v];
      logit = static_cast<float>(scrambled(residual_[wanted[i]] * 977 + v) % 6000) / 1000.0f;
      if (how_.broken_logits && v % 3 == 0) logit = std::numeric_limits<float>::quiet_NaN();
      if (how_.broken_logits && v % 7 == 0) logit = -std::numeric_limits<float>::infinity();
    }
  }
}

void toy_stages::clear_state(slot_id slot) {
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    state(slot, layer, 0) = 0;
    state(slot, layer, 1) = layer + 1;  // an initial state that is not all zeros
  }
}

void toy_stages::copy_state(slot_id from, slot_id to) {
  for (std::uint32_t layer = 0; layer < layers; ++layer)
    for (std::uint32_t which = 0; which < 2; ++which) state(to, layer, which) = state(from, layer, which);
}

void toy_stages::read_state(slot_id slot, std::span<float> out) const {
  check(out.size() == state_floats());
  std::copy_n(states_.begin() + static_cast<std::ptrdiff_t>(slot * state_floats()), out.size(), out.begin());
}

void toy_stages::write_state(slot_id slot, std::span<const float> in) {
  check(in.size() == state_floats());
  for (std::size_t i = 0; i < in.size(); ++i) states_[slot * state_floats() + i] = static_cast<std::uint32_t>(in[i]);
}

void toy_stages::parallel_for(std::size_t count, range_body body, void* context) {
  const std::size_t half = count / 2;
  std::thread other([&] { body(context, 0, half); });
  body(context, half, count);
  other.join();
}

}  // namespace skein::test
