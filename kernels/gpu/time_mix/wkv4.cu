// Time mixing of RWKV-4: a thread is one channel of one run, with its state in registers. The rows of a few tokens are
// loaded together, because each is needed for a short time only.
//
// Floor: the bytes of the states, read and written.
#include "kernels/gpu/time_mix/wkv4.hpp"

#include "base/check.hpp"
#include "kernels/gpu/device/gemm_rows.cuh"
#include "kernels/gpu/device/pdl.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned threads = 64;
constexpr unsigned tokens_together = 4;

/// The state of one channel.
struct channel_state {
  float aa, bb, pp;

  /// Returns the weighted mean with the token, and updates the state.
  __device__ float take(float decay, float bonus, float k, float v) {
    const float now = bonus + k, top = fmaxf(pp, now);
    const float old_share = expf(pp - top), new_share = expf(now - top);
    const float mean = multiply_add(old_share, aa, new_share * v) / multiply_add(old_share, bb, new_share);
    const float decayed = pp - decay, next = fmaxf(decayed, k);
    const float kept = expf(decayed - next), added = expf(k - next);
    aa = multiply_add(kept, aa, added * v);
    bb = multiply_add(kept, bb, added);
    pp = next;
    return mean;
  }
};

template <typename Element>
__global__ void __launch_bounds__(threads) wkv4_kernel(device_batch rows, wkv4_parameters of) {
  pdl_launch_dependents();
  const sequence_run run = rows.runs[blockIdx.y];  // beyond the count it is meaningless, but may be read
  const std::uint32_t channel = blockIdx.x * threads + threadIdx.x;
  if (blockIdx.y >= rows.counts->runs) return pdl_wait();
  float* const own = reinterpret_cast<float*>(static_cast<char*>(of.state) + run.slot * of.slot_bytes) + channel;
  channel_state state{own[0], own[of.width], own[2 * of.width]};
  const float decay = of.decay[channel], bonus = of.bonus[channel];
  pdl_wait();
  for (std::uint32_t done = 0; done < run.rows; done += tokens_together) {
    gemms_on_their_way<Element, 1> r[tokens_together], v[tokens_together];
    gemms_on_their_way<float, 1> k[tokens_together];
#pragma unroll
    for (unsigned i = 0; i < tokens_together; ++i)
      if (const std::uint32_t row = run.first_row + done + i; done + i < run.rows)
        r[i] = {of.r, row, channel}, k[i] = {of.k, row, channel}, v[i] = {of.v, row, channel};
#pragma unroll
    for (unsigned i = 0; i < tokens_together; ++i)
      if (done + i < run.rows) {
        float of_r[1], of_k[1], of_v[1];
        r[i].read(of_r), k[i].read(of_k), v[i].read(of_v);
        const float mean = state.take(decay, bonus, of_k[0], of_v[0]);
        static_cast<Element*>(of.y)[static_cast<std::size_t>(run.first_row + done + i) * of.width + channel] =
            from_float<Element>(mean * quick_logistic(-1.44269504f * of_r[0]));
      }
  }
  own[0] = state.aa, own[of.width] = state.bb, own[2 * of.width] = state.pp;
}

}  // namespace

result<void> wkv4(stream_handle in, const device_batch& rows, element type, const wkv4_parameters& of) {
  check(of.width % threads == 0);
  const launch_shape shape{"wkv4", {of.width / threads, rows.room.runs}, {threads}, 0, in, true};
  return with_element(type, [&]<typename Element>() { return launch(shape, wkv4_kernel<Element>, rows, of); });
}

}  // namespace skein::kernels::gpu
