// Time mixing one token after another, for heads of any size.
//
// All released models of RWKV-7 have heads of 64, so this is a simple implementation: a block is one head of one run, a
// thread is one value, whose S[value, 0 .. N-1] stays in memory as [key, value], so that the accesses of neighbouring
// threads coalesce. A token reads the state twice and writes it once; while heads are small, the second read hits the
// L1 cache.
//
// Floor: the bytes of the states, read and written once per token.
#include "base/check.hpp"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/time_mix/any_head.cuh"
#include "kernels/gpu/time_mix/time_mix.hpp"
#include "kernels/gpu/time_mix/time_mix_rows.cuh"

namespace skein::kernels::gpu {

namespace {

/// The vectors of a token that all values of a head need.
struct token_of_head {
  float r[head_size_max], w[head_size_max], k[head_size_max], kk[head_size_max], a_kk[head_size_max];
};

/// S <- S diag(w) - (S kk) (a * kk)^T + v k^T for one value; returns its y.
template <typename Stored>
__device__ float take_token(Stored* of_value, std::uint32_t size, const token_of_head& token, float v) {
  const auto for_each_key = [&](const auto& visit) {
    // All loads are issued before the first value is used. Compared with one key after another, 1.5B with heads of 128
    // gives 34 to 61 % more tokens with 32 rows and more, and 6 % fewer with one (one H200, 2026-11-25).
    constexpr unsigned together = 16;
    for (std::uint32_t first = 0; first < size; first += together) {
      Stored loaded[together];
#pragma unroll
      for (unsigned i = 0; i < together; ++i)
        if (first + i < size) loaded[i] = of_value[(first + i) * size];
#pragma unroll
      for (unsigned i = 0; i < together; ++i)
        if (first + i < size) visit(first + i, to_float(loaded[i]));
    }
  };
  float removed = 0, y = 0;
  for_each_key([&](std::uint32_t key, float state) { removed = multiply_add(state, token.kk[key], removed); });
  for_each_key([&](std::uint32_t key, float state) {
    const float updated = update(state, removed, v, token.w[key], token.a_kk[key], token.k[key]);
    of_value[key * size] = from_float<Stored>(updated);
    y = multiply_add(updated, token.r[key], y);
  });
  return y;
}

template <typename Element, typename Stored>
__global__ void __launch_bounds__(head_size_max)
    any_head_kernel(device_batch rows, time_mix_parameters of, std::uint32_t size) {
  using gate = gate_type<Element>;
  __shared__ token_of_head token;
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
    const std::size_t at = static_cast<std::size_t>(row) * of.width + channel;
    float r = 0, k = 0, v = 0, w = 0, a = 0, kk = 0, bonus = 0;
    if (is_there) {
      r = load_channel<Element>(of.r, row, channel), v = load_channel<Element>(of.v, row, channel);
      const float of_key = load_channel<Element>(of.k, row, channel);
      w = expf(-0.60653066f * logistic(of.w0[channel] + load_channel<gate>(of.w_out, row, channel)));  // exp(-0.5)
      a = logistic(of.a0[channel] + load_channel<gate>(of.a_out, row, channel));
      k = of_key * multiply_add(a - 1, of.k_a[channel], 1);
      kk = of_key * of.k_k[channel];
      bonus = r * k * of.r_k[channel];
      Element* const v_first = static_cast<Element*>(of.v_first) + at;
      if (of.first_layer)
        *v_first = from_float<Element>(v);
      else
        v = multiply_add(to_float(*v_first) - v, logistic(of.v0[channel] + load_channel<gate>(of.v_out, row, channel)),
                         v);
    }
    kk *= inverse_root(fmaxf(sum_of_block(kk * kk), 1e-24f));
    bonus = sum_of_block(bonus) * v;
    if (is_there) token.r[own] = r, token.w[own] = w, token.k[own] = k, token.kk[own] = kk, token.a_kk[own] = a * kk;
    __syncthreads();
    const float y = is_there ? take_token(of_value, size, token, v) : 0;
    const float mean = mean_of_head(y), off = y - mean;
    const float scale = inverse_root(mean_of_head(off * off) + group_norm_eps);
    if (!is_there) continue;
    const float normed = multiply_add(off * scale, of.ln_x_weight[channel], of.ln_x_bias[channel]);
    static_cast<Element*>(of.y)[at] =
        from_float<Element>((normed + bonus) * load_channel<gate>(of.g_out, row, channel));
  }
}

}  // namespace

result<void> time_mix_any_head(stream_handle in, const device_batch& rows, element type, element state_type,
                               const time_mix_parameters& of, std::uint32_t size) {
  check(size >= 1 && size <= head_size_max && size != head_size && of.width % size == 0);
  check(state_type != element::bf16);
  const launch_shape shape{
      "time_mix_any_head", {of.width / size, rows.room.runs}, {(size + 63) / 64 * 64}, 0, in, true};
  return with_element(type, [&]<typename Element>() -> result<void> {
    return state_type == element::f32 ? launch(shape, any_head_kernel<Element, float>, rows, of, size)
                                      : launch(shape, any_head_kernel<Element, half>, rows, of, size);
  });
}

}  // namespace skein::kernels::gpu
