#pragma once
#include <type_traits>

#include "kernels/gpu/device/gemm_rows.cuh"
#include "kernels/gpu/device/warp.cuh"
#include "kernels/gpu/time_mix/time_mix.hpp"
#include "kernels/ops.hpp"

/// The work of time mixing on one token of one head outside the state, by one warp: it computes the vectors that go
/// into the state and, from the vector that is read from the state, the output. A lane has a few adjacent channels.
namespace skein::kernels::gpu {

inline constexpr unsigned lane_channels = head_size / warp_width;
using of_lane = float[lane_channels];  ///< one number for each channel of a lane

/// gate_element as a type.
template <typename Element>
using gate_type = std::conditional_t<std::is_same_v<Element, float>, float, half>;

/// The GEMM outputs of a token.
struct token_inputs {
  of_lane r, k, v, w_out, a_out, v_out, g, v_first;
};

template <typename Element>
using lane_on_its_way = on_their_way<Element, lane_channels>;

/// Issues the load of row `row` of an output without partial sums; `channel` is the lane's first, counted over all
/// heads.
template <typename Element>
__device__ lane_on_its_way<Element> ask_for(const gemm_rows& from, std::uint32_t row, std::uint32_t channel) {
  return lane_on_its_way<Element>(static_cast<const Element*>(from.data) + static_cast<std::size_t>(row) * from.stride +
                                  channel);
}

/// The GEMM outputs besides r, k and v.
template <typename Element>
struct gates_on_their_way {
  lane_on_its_way<gate_type<Element>> w_out, a_out, v_out, g_out;
  lane_on_its_way<Element> v_first;

  __device__ void ask(const time_mix_parameters& of, std::uint32_t row, std::uint32_t channel) {
    using gate = gate_type<Element>;
    w_out = ask_for<gate>(of.w_out, row, channel), a_out = ask_for<gate>(of.a_out, row, channel);
    g_out = ask_for<gate>(of.g_out, row, channel);
    if (of.first_layer) return;
    v_out = ask_for<gate>(of.v_out, row, channel);
    v_first = ask_for<Element>({of.v_first, of.width}, row, channel);
  }
  __device__ void read(bool first_layer, token_inputs& in) const {
    w_out.read(in.w_out), a_out.read(in.a_out), g_out.read(in.g);
    if (!first_layer) v_out.read(in.v_out), v_first.read(in.v_first);
  }
};

/// Loads the GEMM outputs of row `row`.
template <typename Element>
__device__ token_inputs load_inputs(const time_mix_parameters& of, std::uint32_t row, std::uint32_t channel) {
  using gemms = gemms_on_their_way<Element, lane_channels>;
  const gemms r(of.r, row, channel), k(of.k, row, channel), v(of.v, row, channel);
  gates_on_their_way<Element> gates;
  gates.ask(of, row, channel);
  token_inputs in;
  r.read(in.r), k.read(in.k), v.read(in.v);
  gates.read(of.first_layer, in);
  return in;
}

/// The same without partial sums. The loads are issued at once and waited for when the inputs are read.
template <typename Element>
struct inputs_on_their_way {
  lane_on_its_way<Element> r, k, v;
  gates_on_their_way<Element> gates;

  __device__ void load(const time_mix_parameters& of, std::uint32_t row, std::uint32_t channel) {
    r = ask_for<Element>(of.r, row, channel), k = ask_for<Element>(of.k, row, channel);
    v = ask_for<Element>(of.v, row, channel);
    gates.ask(of, row, channel);
  }
  __device__ token_inputs read(bool first_layer) const {
    token_inputs in;
    r.read(in.r), k.read(in.k), v.read(in.v);
    gates.read(first_layer, in);
    return in;
  }
};

/// The weights of a lane's channels.
struct head_weights {
  of_lane w0, a0, v0, k_k, k_a, r_k;
};
__device__ inline head_weights load_weights(const time_mix_parameters& of, std::uint32_t channel) {
  head_weights weights;
  load_floats(of.w0 + channel, weights.w0);
  load_floats(of.a0 + channel, weights.a0);
  if (!of.first_layer) load_floats(of.v0 + channel, weights.v0);
  load_floats(of.k_k + channel, weights.k_k);
  load_floats(of.k_a + channel, weights.k_a);
  load_floats(of.r_k + channel, weights.r_k);
  return weights;
}

/// The vectors that go into the state, and the one that is added to its output.
struct token_vectors {
  of_lane log_w, k, v, kk, a_kk, bonus;
};

__device__ inline float logistic(float x) { return quick_logistic(-1.44269504f * x); }

__device__ inline token_vectors make_token(const token_inputs& in, const head_weights& weights, bool first_layer) {
  token_vectors out;
  of_lane rate;
  float squares = 0;
  for (unsigned i = 0; i < lane_channels; ++i) {
    out.log_w[i] = -0.60653066f * logistic(weights.w0[i] + in.w_out[i]);  // exp(-0.5)
    rate[i] = logistic(weights.a0[i] + in.a_out[i]);
    out.v[i] = in.v[i];
    if (!first_layer) out.v[i] = multiply_add(in.v_first[i] - in.v[i], logistic(weights.v0[i] + in.v_out[i]), in.v[i]);
    out.kk[i] = in.k[i] * weights.k_k[i];  // from k before the rate changes it
    squares = multiply_add(out.kk[i], out.kk[i], squares);
  }
  const float by_length = inverse_root(fmaxf(warp_sum(squares), 1e-24f));
  float bonus = 0;
  for (unsigned i = 0; i < lane_channels; ++i) {
    out.kk[i] *= by_length;
    out.a_kk[i] = rate[i] * out.kk[i];
    out.k[i] = in.k[i] * multiply_add(rate[i] - 1, weights.k_a[i], 1);
    bonus = multiply_add(in.r[i] * out.k[i], weights.r_k[i], bonus);
  }
  bonus = warp_sum(bonus);
  for (unsigned i = 0; i < lane_channels; ++i) out.bonus[i] = bonus * out.v[i];
  return out;
}

/// In the first layer: stores v, which all later layers mix with.
template <typename Element>
__device__ void keep_v_first(const time_mix_parameters& of, std::uint32_t row, std::uint32_t channel,
                             const of_lane& v) {
  if (of.first_layer)
    store_floats(static_cast<Element*>(of.v_first) + static_cast<std::size_t>(row) * of.width + channel, v);
}

/// out = (group_norm(y) * weight + bias + bonus) * g
/// y was read from the state; `weight` and `bias` are ln_x of the lane's channels.
template <typename Element>
__device__ void finish_token(const time_mix_parameters& of, std::uint32_t row, std::uint32_t channel, of_lane& y,
                             const of_lane& weight, const of_lane& bias, const of_lane& bonus, const of_lane& g) {
  float sum = 0, squares = 0;
  for (unsigned i = 0; i < lane_channels; ++i) sum += y[i];
  const float mean = warp_sum(sum) / head_size;
  for (unsigned i = 0; i < lane_channels; ++i) squares = multiply_add(y[i] - mean, y[i] - mean, squares);
  const float scale = inverse_root(warp_sum(squares) / head_size + group_norm_eps);
  for (unsigned i = 0; i < lane_channels; ++i)
    y[i] = (multiply_add((y[i] - mean) * scale, weight[i], bias[i]) + bonus[i]) * g[i];
  store_floats(static_cast<Element*>(of.y) + static_cast<std::size_t>(row) * of.width + channel, y);
}

}  // namespace skein::kernels::gpu
