// Time mixing of RWKV-5 and 6 one token after another, for heads of any size, in the manner of time_mix_any_head.cu: a
// block is one head of one run, a thread is one value, whose S[value, 0 .. N-1] stays in memory as [key, value].
//
// Floor: the bytes of the states, read and written once per token.
#include "base/check.hpp"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/time_mix/any_head.cuh"
#include "kernels/gpu/time_mix/time_mix_token.cuh"
#include "kernels/gpu/time_mix/wkv6_token.cuh"

namespace skein::kernels::gpu {

namespace {

/// The vectors of a token that all values of a head need.
struct keys_of_token {
  float r[head_size_max], w[head_size_max], k[head_size_max];
};

/// Returns y = S r of one value, then S <- S diag(w) + v k^T.
template <typename Stored>
__device__ float take(Stored* of_value, std::uint32_t size, const keys_of_token& token, float v) {
  constexpr unsigned together = 16;  // loads in flight
  float y = 0;
  for (std::uint32_t first = 0; first < size; first += together) {
    Stored loaded[together];
#pragma unroll
    for (unsigned i = 0; i < together; ++i)
      if (first + i < size) loaded[i] = of_value[(first + i) * size];
#pragma unroll
    for (unsigned i = 0; i < together; ++i)
      if (const std::uint32_t key = first + i; key < size) {
        const float state = to_float(loaded[i]);
        y = multiply_add(state, token.r[key], y);
        of_value[key * size] = from_float<Stored>(add_token(state, token.w[key], v, token.k[key]));
      }
  }
  return y;
}

template <typename Element, typename Stored>
__global__ void __launch_bounds__(head_size_max)
    any_head_kernel(device_batch rows, wkv6_parameters of, std::uint32_t size) {
  __shared__ keys_of_token token;
  pdl_launch_dependents();
  pdl_wait();
  if (blockIdx.y >= rows.counts->runs) return;
  const sequence_run run = rows.runs[blockIdx.y];
  const std::uint32_t own = threadIdx.x, channel = blockIdx.x * size + own;
  const bool is_there = own < size;  // the other threads only take part in barriers
  Stored* const of_value = reinterpret_cast<Stored*>(static_cast<char*>(of.state) + run.slot * of.slot_bytes) +
                           static_cast<std::size_t>(blockIdx.x) * size * size + own;
  const auto mean_of_head = [&](float value) { return sum_of_block(is_there ? value : 0) / static_cast<float>(size); };
  for (std::uint32_t row = run.first_row; row < run.first_row + run.rows; ++row) {
    float r = 0, k = 0, v = 0, w = 0, bonus = 0;
    if (is_there) {
      r = load_channel<Element>(of.r, row, channel), k = load_channel<Element>(of.k, row, channel);
      v = load_channel<Element>(of.v, row, channel), w = of.decay[channel];
      if (of.w_out.data) w = decay_of_token(w, load_channel<gate_type<Element>>(of.w_out, row, channel));
      bonus = r * k * of.bonus[channel];
    }
    bonus = sum_of_block(bonus) * v;
    if (is_there) token.r[own] = r, token.w[own] = w, token.k[own] = k;
    __syncthreads();
    const float y = is_there ? take(of_value, size, token, v) + bonus : 0;
    const float mean = mean_of_head(y), off = y - mean;
    const float scale = inverse_root(mean_of_head(off * off) + group_norm_eps);
    if (!is_there) continue;
    const float normed = multiply_add(off * scale, of.ln_x_weight[channel], of.ln_x_bias[channel]);
    const float gate = of.g.data ? silu_of(load_channel<Element>(of.g, row, channel)) : 1;
    static_cast<Element*>(of.y)[static_cast<std::size_t>(row) * of.width + channel] =
        from_float<Element>(normed * gate);
  }
}

}  // namespace

result<void> wkv6_any_head(stream_handle in, const device_batch& rows, element type, element state_type,
                           const wkv6_parameters& of, std::uint32_t size) {
  check(size >= 1 && size <= head_size_max && size != head_size && of.width % size == 0);
  check(state_type != element::bf16);
  check(of.w_out.parts == 0);
  const launch_shape shape{"wkv6_any_head", {of.width / size, rows.room.runs}, {(size + 63) / 64 * 64}, 0, in, true};
  return with_element(type, [&]<typename Element>() {
    return state_type == element::f32 ? launch(shape, any_head_kernel<Element, float>, rows, of, size)
                                      : launch(shape, any_head_kernel<Element, half>, rows, of, size);
  });
}

}  // namespace skein::kernels::gpu
