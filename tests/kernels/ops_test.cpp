// Norms, token shift and the wkv head of the CPU against the plain primitives of ops.hpp, for every Highway target and
// for sizes that fill no vector. Outputs lie between guard values.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/cpu/row_ops.hpp"
#include "kernels/cpu/wkv/wkv7.hpp"
#include "kernels/ops.hpp"
#include "tests/kernels/every_target.hpp"
#include "tests/kernels/random_rwkv7.hpp"

using namespace skein;

namespace {

constexpr std::size_t sizes[] = {1, 3, 15, 16, 17, 64, 100, 257};
constexpr float guard = -12345;

std::vector<float> random_values(std::size_t count, std::uint64_t seed, float centre = 0, float spread = 1) {
  test::random_numbers random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = centre + spread * random.value();
  return values;
}

/// Room for a row with a guard value behind it.
std::vector<float> guarded(std::size_t size) { return std::vector<float>(size + 1, guard); }

void check_row(const std::vector<float>& got, const std::vector<float>& expected, float tolerance) {
  for (std::size_t i = 0; i < expected.size(); ++i) BOOST_REQUIRE_SMALL(got[i] - expected[i], tolerance);
  BOOST_REQUIRE_EQUAL(got[expected.size()], guard);
}

/// One head with random weights, rows and state.
struct head_case {
  head_case(std::size_t size, std::size_t tokens, bool first_layer)
      : n(size), rows(tokens), stride(size + 5), first(first_layer) {
    std::uint64_t seed = size * 100;
    for (auto* weights : {&w0, &a0, &v0, &k_k, &k_a, &r_k, &ln_weight, &ln_bias}) *weights = random_values(n, ++seed);
    for (auto* values : {&r, &w, &k, &v, &a, &v_mix, &g, &v_first}) *values = random_values(rows * stride, ++seed);
    state = random_values(n * n, ++seed);
  }
  std::size_t n, rows, stride;
  bool first;
  std::vector<float> w0, a0, v0, k_k, k_a, r_k, ln_weight, ln_bias, r, w, k, v, a, v_mix, g, v_first, state;

  /// The head by the primitives: y (dense rows), and `state` moves on in the canonical order.
  std::vector<float> by_primitives() {
    std::vector<float> all;
    for (std::size_t t = 0; t < rows; ++t) {
      const auto part = [&](const std::vector<float>& of) {
        return std::vector<float>(of.begin() + t * stride, of.begin() + t * stride + n);
      };
      auto rt = part(r), wt = part(w), kt = part(k), vt = part(v), at = part(a), kk = kt;
      for (std::size_t i = 0; i < n; ++i) {
        wt[i] = kernels::decay(w0[i] + wt[i]);
        at[i] = kernels::sigmoid(a0[i] + at[i]);
        kk[i] *= k_k[i];
        kt[i] *= 1 + (at[i] - 1) * k_a[i];
        if (!first) vt[i] += (v_first[t * stride + i] - vt[i]) * kernels::sigmoid(v0[i] + v_mix[t * stride + i]);
      }
      kernels::normalise(kk);
      std::vector<float> y(n);
      kernels::wkv7({rt, wt, kt, vt, kk, at}, state, y);
      kernels::group_norm(y, 1, ln_weight, ln_bias, kernels::group_norm_eps, y);
      kernels::add_bonus(rt, kt, vt, r_k, y);
      for (std::size_t i = 0; i < n; ++i) all.push_back(y[i] * g[t * stride + i]);
    }
    return all;
  }

  void by_cpu(std::vector<float>& y, float* padded_state) const {
    const kernels::cpu::wkv7_head head{w0.data(),        a0.data(),      first ? nullptr : v0.data(),
                                       k_k.data(),       k_a.data(),     r_k.data(),
                                       ln_weight.data(), ln_bias.data(), n};
    kernels::cpu::wkv7(head,
                       {r.data(), k.data(), v.data(), w.data(), a.data(), v_mix.data(), g.data(), v_first.data(),
                        y.data(), stride, rows},
                       padded_state);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(layer_norm_equals_the_reference) {
  test::for_every_target([] {
    for (const std::size_t n : sizes) {
      const auto x = random_values(n, n, 3), weight = random_values(n, n + 1), bias = random_values(n, n + 2);
      std::vector<float> expected(n);
      kernels::layer_norm(x, weight, bias, kernels::layer_norm_eps, expected);
      auto got = guarded(n);
      kernels::cpu::layer_norm(x.data(), weight.data(), bias.data(), kernels::layer_norm_eps, n, got.data());
      check_row(got, expected, n == 1 ? 0 : 2e-5f);
      std::vector<float> in_place = x;
      kernels::cpu::layer_norm(in_place.data(), weight.data(), bias.data(), kernels::layer_norm_eps, n,
                               in_place.data());
      BOOST_REQUIRE(std::memcmp(in_place.data(), got.data(), n * sizeof(float)) == 0);
    }
  });
}

BOOST_AUTO_TEST_CASE(token_shift_equals_the_reference) {
  test::for_every_target([] {
    for (const std::size_t n : sizes) {
      const auto now = random_values(n, n), before = random_values(n, n + 1), mix = random_values(n, n + 2);
      std::vector<float> expected(n);
      kernels::token_shift(now, before, mix, expected);
      auto got = guarded(n);
      kernels::cpu::token_shift(now.data(), before.data(), mix.data(), n, got.data());
      check_row(got, expected, 1e-6f);
    }
  });
}

BOOST_AUTO_TEST_CASE(wkv7_equals_the_reference) {
  test::for_every_target([] {
    for (const std::size_t n : {1, 3, 8, 16, 33, 64, 96, 256}) {
      for (const bool first_layer : {true, false}) {
        head_case head(n, 5, first_layer);
        std::vector<float> state(kernels::cpu::head_state_floats(n) + 16, 0.0f);
        float* const aligned = state.data() + (-reinterpret_cast<std::uintptr_t>(state.data()) % 64) / sizeof(float);
        kernels::cpu::head_state_in(n, head.state, aligned);
        std::vector<float> y(head.rows * head.stride, guard);
        head.by_cpu(y, aligned);
        const std::vector<float> expected = head.by_primitives();
        float largest = 1;
        for (const float value : head.state) largest = std::max(largest, std::abs(value));
        std::vector<float> canonical(n * n);
        kernels::cpu::head_state_out(n, aligned, canonical);
        BOOST_TEST_CONTEXT("head size " << n) {
          for (std::size_t i = 0; i < n * n; ++i) BOOST_REQUIRE_SMALL(canonical[i] - head.state[i], 1e-5f * largest);
          for (std::size_t t = 0; t < head.rows; ++t) {
            // A group norm of few values divides by a small deviation, which enlarges every rounding before it.
            for (std::size_t i = 0; i < n; ++i)
              BOOST_REQUIRE_SMALL(y[t * head.stride + i] - expected[t * n + i], n < 16 ? 1e-3f : 1e-4f);
            for (std::size_t i = n; i < head.stride; ++i) BOOST_REQUIRE_EQUAL(y[t * head.stride + i], guard);
          }
        }
      }
    }
  });
}

// However a run is cut, the rows and the state get the same bits.
BOOST_AUTO_TEST_CASE(wkv7_does_not_see_where_a_run_is_cut) {
  const head_case head(40, 9, false);
  const std::size_t floats = kernels::cpu::head_state_floats(40);
  const auto feed = [&](std::size_t step, std::vector<float>& y) {
    std::vector<float> state(floats + 16, 0.0f);
    float* const aligned = state.data() + (-reinterpret_cast<std::uintptr_t>(state.data()) % 64) / sizeof(float);
    kernels::cpu::head_state_in(40, head.state, aligned);
    for (std::size_t t = 0; t < head.rows; t += step) {
      head_case piece = head;
      piece.rows = std::min(step, head.rows - t);
      for (auto* values : {&piece.r, &piece.w, &piece.k, &piece.v, &piece.a, &piece.v_mix, &piece.g, &piece.v_first})
        values->erase(values->begin(), values->begin() + t * head.stride);
      std::vector<float> out(piece.rows * head.stride, guard);
      piece.by_cpu(out, aligned);
      y.insert(y.end(), out.begin(), out.end());
    }
    return std::vector<float>(aligned, aligned + floats);
  };
  std::vector<float> y_whole, y_cut;
  const auto whole = feed(9, y_whole);
  for (const std::size_t step : {1, 2, 4}) {
    y_cut.clear();
    const auto cut = feed(step, y_cut);
    BOOST_TEST(std::memcmp(whole.data(), cut.data(), floats * sizeof(float)) == 0);
    BOOST_TEST(std::memcmp(y_whole.data(), y_cut.data(), y_whole.size() * sizeof(float)) == 0);
  }
}
