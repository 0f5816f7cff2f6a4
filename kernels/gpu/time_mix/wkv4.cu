// Time mixing of RWKV-4: a thread is one channel of one run, with its state in registers. Each token is needed for a
// short time only, so the rows of a few are loaded together, while the ones before them are processed.
//
// Floor: the bytes of the states, read and written.
#include "kernels/gpu/time_mix/wkv4.hpp"

#include "base/check.hpp"
#include "kernels/gpu/device/gemm_rows.cuh"
#include "kernels/gpu/device/pdl.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned wkv4_threads = 64;

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

/// A channel of some rows of r, k and v, as rows or as partial sums.
template <typename Element, bool in_parts>
struct rows_on_their_way {
  static constexpr unsigned count = in_parts ? 4 : 8;
  template <typename T>
  using channel = std::conditional_t<in_parts, gemms_on_their_way<T, 1>, on_their_way<T, 1>>;
  channel<Element> r[count], v[count];
  channel<float> k[count];

  template <typename T>
  static __device__ channel<T> ask(const gemm_rows& of, std::uint32_t row, std::uint32_t at) {
    if constexpr (in_parts)
      return {of, row, at};
    else
      return channel<T>(static_cast<const T*>(of.data) + static_cast<std::size_t>(row) * of.stride + at);
  }
  /// Rows from `row` on; after the last one, that one again.
  __device__ void ask(const wkv4_parameters& of, std::uint32_t row, std::uint32_t last, std::uint32_t at) {
#pragma unroll
    for (unsigned i = 0; i < count; ++i) {
      const std::uint32_t own = row + i < last ? row + i : last;
      r[i] = ask<Element>(of.r, own, at), k[i] = ask<float>(of.k, own, at), v[i] = ask<Element>(of.v, own, at);
    }
  }
};

template <typename Element, bool in_parts>
__global__ void __launch_bounds__(wkv4_threads) wkv4_kernel(device_batch rows, wkv4_parameters of) {
  pdl_launch_dependents();
  const sequence_run run = rows.runs[blockIdx.y];  // beyond the count it is meaningless, but may be read
  const std::uint32_t channel = blockIdx.x * wkv4_threads + threadIdx.x;
  if (blockIdx.y >= rows.counts->runs) return pdl_wait();
  float* const own = reinterpret_cast<float*>(static_cast<char*>(of.state) + run.slot * of.slot_bytes) + channel;
  channel_state state{own[0], own[of.width], own[2 * of.width]};
  const float decay = of.decay[channel], bonus = of.bonus[channel];
  const std::uint32_t end = run.first_row + run.rows;
  Element* const y = static_cast<Element*>(of.y) + channel;
  pdl_wait();
  using inputs = rows_on_their_way<Element, in_parts>;
  inputs next;
  next.ask(of, run.first_row, end - 1, channel);
  for (std::uint32_t row = run.first_row; row < end; row += inputs::count) {
    const inputs now = next;
    if (row + inputs::count < end) next.ask(of, row + inputs::count, end - 1, channel);
#pragma unroll
    for (unsigned i = 0; i < inputs::count; ++i)
      if (row + i < end) {
        float r[1], k[1], v[1];
        now.r[i].read(r), now.k[i].read(k), now.v[i].read(v);
        const float mean = state.take(decay, bonus, k[0], v[0]);
        y[static_cast<std::size_t>(row + i) * of.width] =
            from_float<Element>(mean * quick_logistic(-1.44269504f * r[0]));
      }
  }
  own[0] = state.aa, own[of.width] = state.bb, own[2 * of.width] = state.pp;
}

/// The same for runs of one row each: a thread has four channels, for wide accesses.
template <typename Element>
__global__ void __launch_bounds__(wkv4_threads) wkv4_token_kernel(device_batch rows, wkv4_parameters of) {
  pdl_launch_dependents();
  const sequence_run run = rows.runs[blockIdx.y];
  const std::uint32_t channel = (blockIdx.x * wkv4_threads + threadIdx.x) * 4;
  if (blockIdx.y >= rows.counts->runs || channel >= of.width) return pdl_wait();
  float* const own = reinterpret_cast<float*>(static_cast<char*>(of.state) + run.slot * of.slot_bytes) + channel;
  const on_their_way<float, 4> of_aa(own), of_bb(own + of.width), of_pp(own + 2 * of.width);
  const on_their_way<float, 4> of_decay(of.decay + channel), of_bonus(of.bonus + channel);
  pdl_wait();
  const gemms_on_their_way<Element, 4> of_r(of.r, run.first_row, channel), of_v(of.v, run.first_row, channel);
  const gemms_on_their_way<float, 4> of_k(of.k, run.first_row, channel);
  float aa[4], bb[4], pp[4], decay[4], bonus[4], r[4], k[4], v[4], y[4];
  of_aa.read(aa), of_bb.read(bb), of_pp.read(pp), of_decay.read(decay), of_bonus.read(bonus);
  of_r.read(r), of_k.read(k), of_v.read(v);
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    channel_state state{aa[i], bb[i], pp[i]};
    y[i] = state.take(decay[i], bonus[i], k[i], v[i]) * quick_logistic(-1.44269504f * r[i]);
    aa[i] = state.aa, bb[i] = state.bb, pp[i] = state.pp;
  }
  store_floats(static_cast<Element*>(of.y) + static_cast<std::size_t>(run.first_row) * of.width + channel, y);
  store_floats(own, aa), store_floats(own + of.width, bb), store_floats(own + 2 * of.width, pp);
}

}  // namespace

result<void> wkv4(stream_handle in, const device_batch& rows, element type, const wkv4_parameters& of) {
  check(of.width % wkv4_threads == 0);
  if (rows.room.runs == rows.room.rows) {
    const std::uint32_t blocks = (of.width / 4 + wkv4_threads - 1) / wkv4_threads;
    const launch_shape shape{"wkv4_token", {blocks, rows.room.runs}, {wkv4_threads}, 0, in, true};
    return with_element(type, [&]<typename Element>() { return launch(shape, wkv4_token_kernel<Element>, rows, of); });
  }
  const launch_shape shape{"wkv4", {of.width / wkv4_threads, rows.room.runs}, {wkv4_threads}, 0, in, true};
  const bool in_parts = of.r.parts > 0 || of.k.parts > 0 || of.v.parts > 0;
  return with_element(type, [&]<typename Element>() {
    return in_parts ? launch(shape, wkv4_kernel<Element, true>, rows, of)
                    : launch(shape, wkv4_kernel<Element, false>, rows, of);
  });
}

}  // namespace skein::kernels::gpu
