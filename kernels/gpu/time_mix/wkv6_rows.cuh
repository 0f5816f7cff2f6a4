#pragma once
#include "kernels/gpu/time_mix/time_mix_rows.cuh"
#include "kernels/gpu/time_mix/wkv6_token.cuh"

/// What a warp computes of a token of RWKV-5 and 6 outside of the state: the vectors that go into it, and the output.
namespace skein::kernels::gpu {

/// The vectors of some tokens: r, w and k in the order of row_part::position, the others by channel.
template <unsigned places>
struct alignas(16) wkv6_tile {
  float r[places][head_size], w[places][head_size], k[places][head_size], v[places][head_size];
  float y[places][head_size];
  // Read by their owner only.
  float bonus[places][head_size], gate[places][head_size];
};

/// The weights of a lane's channels.
struct wkv6_weights {
  of_lane decay, bonus, norm_weight, norm_bias;

  __device__ wkv6_weights(const wkv6_parameters& of, std::uint32_t channel) {
    load_floats(of.decay + channel, decay);
    load_floats(of.bonus + channel, bonus);
    load_floats(of.ln_x_weight + channel, norm_weight);
    load_floats(of.ln_x_bias + channel, norm_bias);
  }
};

/// The GEMM outputs of a lane's channels of a token; w and gate are zeros if the model has none.
struct wkv6_inputs {
  of_lane r, k, v, w, gate;
};

/// r, k and v as rows or as partial sums. The loads are issued at once and waited for when the inputs are read.
template <typename Element, bool in_parts>
struct wkv6_inputs_on_their_way {
  using gemms = std::conditional_t<in_parts, gemms_on_their_way<Element, lane_channels>, lane_on_its_way<Element>>;
  gemms r, k, v;
  lane_on_its_way<Element> g;
  lane_on_its_way<gate_type<Element>> w;

  __device__ void ask(const wkv6_parameters& of, std::uint32_t row, std::uint32_t channel) {
    if constexpr (in_parts)
      r = gemms(of.r, row, channel), k = gemms(of.k, row, channel), v = gemms(of.v, row, channel);
    else
      r = ask_for<Element>(of.r, row, channel), k = ask_for<Element>(of.k, row, channel),
      v = ask_for<Element>(of.v, row, channel);
    if (of.g.data) g = ask_for<Element>(of.g, row, channel);
    if (of.w_out.data) w = ask_for<gate_type<Element>>(of.w_out, row, channel);
  }
  __device__ wkv6_inputs read(const wkv6_parameters& of) const {
    wkv6_inputs in{};
    r.read(in.r), k.read(in.k), v.read(in.v);
    if (of.w_out.data) w.read(in.w);
    if (of.g.data) g.read(in.gate);
    return in;
  }
};

/// Computes the vectors of a token.
template <typename Stored, unsigned places>
__device__ void fill(const wkv6_parameters& of, std::uint32_t channel, const wkv6_weights& weights, wkv6_inputs in,
                     wkv6_tile<places>& tile, unsigned t) {
  float bonus = 0;
  for (unsigned i = 0; i < lane_channels; ++i) {
    in.w[i] = of.w_out.data ? decay_of_token(weights.decay[i], in.w[i]) : weights.decay[i];
    in.gate[i] = of.g.data ? silu_of(in.gate[i]) : 1;
    bonus = multiply_add(in.r[i] * in.k[i], weights.bonus[i], bonus);
  }
  bonus = warp_sum(bonus);
  const std::uint32_t first = channel % head_size, as_key = row_part<Stored>::position(first);
  store_floats(&tile.r[t][as_key], in.r);
  store_floats(&tile.w[t][as_key], in.w);
  store_floats(&tile.k[t][as_key], in.k);
  store_floats(&tile.v[t][first], in.v);
  for (float& value : in.v) value *= bonus;
  store_floats(&tile.bonus[t][first], in.v);
  store_floats(&tile.gate[t][first], in.gate);
}

/// out = (group_norm(y + bonus) * weight + bias) * gate
template <typename Element, unsigned places>
__device__ void finish(const wkv6_parameters& of, std::uint32_t row, std::uint32_t channel, const wkv6_weights& weights,
                       const wkv6_tile<places>& tile, unsigned t) {
  const std::uint32_t first = channel % head_size;
  of_lane y, bonus, gate;
  load_floats(&tile.y[t][first], y);
  load_floats(&tile.bonus[t][first], bonus);
  load_floats(&tile.gate[t][first], gate);
  float sum = 0, squares = 0;
  for (unsigned i = 0; i < lane_channels; ++i) sum += y[i] += bonus[i];
  const float mean = warp_sum(sum) / head_size;
  for (unsigned i = 0; i < lane_channels; ++i) squares = multiply_add(y[i] - mean, y[i] - mean, squares);
  const float scale = inverse_root(warp_sum(squares) / head_size + group_norm_eps);
  for (unsigned i = 0; i < lane_channels; ++i)
    y[i] = multiply_add((y[i] - mean) * scale, weights.norm_weight[i], weights.norm_bias[i]) * gate[i];
  store_floats(static_cast<Element*>(of.y) + static_cast<std::size_t>(row) * of.width + channel, y);
}

}  // namespace skein::kernels::gpu
