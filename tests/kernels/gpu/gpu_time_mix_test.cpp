// The fused time-mix kernel, run by the emulator, against the same steps made of the primitives of kernels/reference:
// random runs, slots and heads, sums in parts, first layers and others, states in 32 and 16 bits.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "kernels/gpu/state.hpp"
#include "kernels/gpu/time_mix.hpp"
#include "kernels/ops.hpp"
#include "tests/kernels/gpu/device_values.hpp"
#include "tests/kernels/stage_runs.hpp"
#include "tests/support/random_cases.hpp"

using namespace skein;
using namespace skein::test;
using namespace skein::kernels::gpu;
using values = std::vector<float>;

namespace {

constexpr std::uint32_t n = kernels::gpu::head_size;

/// Random inputs of one layer and one tick, rounded as the device stores them.
struct time_mix_case {
  time_mix_case(random_numbers& random, element type, std::uint32_t heads, std::uint32_t rows, std::uint32_t slots)
      : width(heads * n) {
    const auto activations = [&](std::uint32_t columns) {
      return rounded(random_values(random, rows * columns), type);
    };
    r = activations(width), k = activations(width), v = activations(width), v_first = activations(width);
    for (values* out : {&w_out, &a_out, &v_out, &g_out})
      *out = rounded(random_values(random, rows * width, 1.5f), gate_element(type));
    for (values* vector : {&w0, &a0, &v0, &k_k, &k_a, &r_k, &ln_x_weight, &ln_x_bias})
      *vector = random_values(random, width);
    states = random_values(random, std::size_t{slots} * width * n, 0.5f);  // [slot, head, value, key]
  }

  std::uint32_t width;
  values r, k, v, v_first, w_out, a_out, v_out, g_out;
  values w0, a0, v0, k_k, k_a, r_k, ln_x_weight, ln_x_bias, states;
};

std::span<float> part(values& all, std::size_t width, std::size_t index) {
  return std::span(all).subspan(index * width, width);
}

/// Token t of a run through the whole of it, as the reference stages do it; y is [rows, width].
void take_token(time_mix_case& of, slot_id slot, std::uint32_t t, bool first_layer, values& y) {
  const std::uint32_t width = of.width;
  values w(width), a(width), kk(width), out(width);
  const auto w_out = part(of.w_out, width, t), a_out = part(of.a_out, width, t);
  const auto v_out = part(of.v_out, width, t), g_out = part(of.g_out, width, t);
  const auto r = part(of.r, width, t), k = part(of.k, width, t), v = part(of.v, width, t);
  for (std::uint32_t c = 0; c < width; ++c) {
    w[c] = kernels::decay(of.w0[c] + w_out[c]);
    a[c] = kernels::sigmoid(of.a0[c] + a_out[c]);
    kk[c] = k[c] * of.k_k[c];
    k[c] *= 1 + (a[c] - 1) * of.k_a[c];
    if (first_layer)
      of.v_first[t * width + c] = v[c];
    else
      v[c] += (of.v_first[t * width + c] - v[c]) * kernels::sigmoid(of.v0[c] + v_out[c]);
  }
  for (std::uint32_t h = 0; h < width / n; ++h) {
    const auto of_head = [&](std::span<const float> all) { return all.subspan(h * n, n); };
    kernels::normalise(part(kk, n, h));
    kernels::wkv7({of_head(r), of_head(w), of_head(k), of_head(v), of_head(kk), of_head(a)},
                  part(of.states, n * n, slot * (width / n) + h), part(out, n, h));
  }
  kernels::group_norm(out, width / n, of.ln_x_weight, of.ln_x_bias, kernels::group_norm_eps, out);
  for (std::uint32_t h = 0; h < width / n; ++h) {
    const auto of_head = [&](std::span<const float> all) { return all.subspan(h * n, n); };
    kernels::add_bonus(of_head(r), of_head(k), of_head(v), of_head(of.r_k), part(out, n, h));
  }
  for (std::uint32_t c = 0; c < width; ++c) y[t * width + c] = out[c] * g_out[c];
}

void compare(random_numbers& random, element type, element state_type, bool first_layer) {
  const stream in;
  constexpr std::uint32_t slots = 7;
  const random_batch tick(random, 5, 70, slots, 5, in);
  const std::uint32_t heads = 1 + random.below(3);
  time_mix_case given(random, type, heads, tick.rows(), slots);
  const std::uint32_t width = given.width;

  // The states come in through a slot of one layer, as they do in a model.
  const slot_layout layout{1, width, state_type};
  const device_values memory(values(slots * layout.bytes() / sizeof(float)), element::f32);
  for (slot_id s = 0; s < slots; ++s) {
    values canonical(2 * width, 0.0f);
    const auto state = part(given.states, width * n, s);
    canonical.insert(canonical.end(), state.begin(), state.end());
    const device_values on_device(canonical, element::f32);
    require(
        state_from_canonical(in, layout, on_device.floats(), static_cast<char*>(memory.data()) + s * layout.bytes()));
    require(in.synchronize());
  }
  const auto state_of = [&](slot_id s) {
    const device_values canonical(values(layout.canonical_floats()), element::f32);
    require(state_to_canonical(in, layout, static_cast<char*>(memory.data()) + s * layout.bytes(), canonical.floats()));
    const values all = canonical.read(in);
    return values(all.begin() + 2 * width, all.end());
  };
  for (slot_id s = 0; s < slots; ++s) std::ranges::copy(state_of(s), part(given.states, width * n, s).begin());
  const values states_before = given.states;

  std::vector<device_values> kept;
  kept.reserve(32);
  // Of a product: whole rows, or their sums in parts, which the device adds and rounds.
  const auto product_of = [&](const values& all, element as) -> product_rows {
    const std::uint32_t parts = random.below(4);
    if (parts == 0) return {kept.emplace_back(all, as).data(), width, 0, 0};
    const std::size_t part_stride = all.size() + 4 * random.below(3);
    values addends(parts * part_stride, std::nanf(""));
    for (std::size_t i = 0; i < all.size(); ++i) {
      float sum = 0;
      for (std::uint32_t p = 0; p + 1 < parts; ++p)
        sum += addends[p * part_stride + i] = std::round(16 * random.value()) / 16;
      addends[(parts - 1) * part_stride + i] = all[i] - sum;
    }
    return {kept.emplace_back(addends, element::f32).data(), width, parts, part_stride};
  };
  const auto vector = [&](const values& all) { return kept.emplace_back(all, element::f32).floats(); };
  const device_values y(values(tick.rows() * width), type), v_first(given.v_first, type);
  time_mix_parameters of;
  of.r = product_of(given.r, type), of.k = product_of(given.k, type), of.v = product_of(given.v, type);
  of.w_out = product_of(given.w_out, gate_element(type)), of.a_out = product_of(given.a_out, gate_element(type));
  of.v_out = product_of(given.v_out, gate_element(type)), of.g_out = product_of(given.g_out, gate_element(type));
  of.v_first = v_first.data(), of.y = y.data();
  of.w0 = vector(given.w0), of.a0 = vector(given.a0), of.v0 = vector(given.v0);
  of.k_k = vector(given.k_k), of.k_a = vector(given.k_a), of.r_k = vector(given.r_k);
  of.ln_x_weight = vector(given.ln_x_weight), of.ln_x_bias = vector(given.ln_x_bias);
  of.state = static_cast<char*>(memory.data()) + layout.wkv(0), of.slot_bytes = layout.bytes();
  of.width = width, of.first_layer = first_layer;
  require(time_mix(in, tick.on_device(), type, state_type, of));

  values expected(tick.rows() * width);
  std::vector<bool> touched(slots, false);
  for (const auto& run : tick.runs) {
    touched[run.slot] = true;
    for (std::uint32_t t = run.first_row; t < run.first_row + run.rows; ++t)
      take_token(given, run.slot, t, first_layer, expected);
  }
  // Rounding to the element type happens once, at y; that of a 16-bit state goes through up to 70 tokens.
  const float permitted = state_type == element::f16 ? 5e-3f : type == element::f32 ? 1e-5f : 0;
  BOOST_TEST(difference(y.read(in), expected) < std::max(permitted, type == element::f32   ? 0
                                                                    : type == element::f16 ? 1e-3f
                                                                                           : 8e-3f));
  BOOST_TEST(same_bits(v_first.read(in), given.v_first));
  for (slot_id s = 0; s < slots; ++s) {
    const auto state = part(given.states, width * n, s);
    const values got = state_of(s), wanted(state.begin(), state.end());
    if (touched[s])
      BOOST_TEST(difference(got, wanted) < std::max(permitted, 1e-5f));
    else
      BOOST_TEST(same_bits(got, wanted));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(time_mix_is_what_the_paper_says) {
  for (std::uint64_t seed = random_cases::seed(); seed < random_cases::seed() + 12; ++seed) {
    emulator::block_runner::of_this_thread().reseed(seed);
    random_numbers random(seed);
    const auto type = std::array{element::f32, element::f16, element::bf16}[seed % 3];
    const auto state_type = seed % 2 == 0 ? element::f32 : element::f16;
    BOOST_TEST_CONTEXT("SKEIN_SEED=" << seed) { compare(random, type, state_type, seed % 4 == 1); }
  }
}
