#pragma once
#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/device/discard.cuh"
#include "kernels/gpu/device/gemm_rows.cuh"
#include "kernels/gpu/device/warp.cuh"
#include "kernels/gpu/ops/token_shift.hpp"
#include "kernels/ops.hpp"

/// Token shift of rows that are runs of their own, in blocks of 128 threads, with the bits of ops/token_shift.cu: a
/// warp plays several of the warps that normalise a row there (ops/row_norm.cuh), one after another.
///
/// To have more blocks than rows, a row is cut into slices. Each block normalises the whole row, because its sums are
/// needed, but reads x_prev and writes only in its slice. So no block replaces what another one still reads.
namespace skein::kernels::gpu {

inline constexpr unsigned leader_threads = 128;

/// How rows are cut.
struct shift_cut {
  std::uint32_t slices = 1;   ///< of a row
  std::uint32_t packets = 0;  ///< of four channels, in a slice; the last one may be shorter
  std::uint32_t threads = 0;  ///< that normalise a row in token_shift.cu: row_threads(width)
};

/// Brings the line at `at` into the L2 cache. A hint.
__device__ inline void fetch_line([[maybe_unused]] const void* at) {
#if defined(__CUDA_ARCH__)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
#endif
}

/// The dynamic shared memory of a block: a row, and what its warps know of it.
constexpr std::size_t shift_bytes(std::uint32_t width) { return std::size_t{4} * width + 192; }

/// One row's norm: (value - mean) * scale.
struct row_scale {
  float mean, scale;
};

/// Loads x[t], with what is yet to be added to it, to shared memory, and returns its norm.
__device__ inline row_scale load_whole_row(const token_shift_parameters& of, const shift_cut& cut, std::uint32_t t,
                                           float* row) {
  constexpr unsigned warps_max = 512 / warp_width, packets_max = 3;
  struct share_of_warp {
    float count, mean, squares;
  };
  auto* const shares = reinterpret_cast<share_of_warp*>(row + of.width);
  const std::uint32_t all = of.width / 4;
  const float* const x = of.from.x + static_cast<std::size_t>(t) * of.width;
  for (unsigned own = threadIdx.x; own / warp_width * warp_width < cut.threads; own += leader_threads) {
    float values[packets_max][4];
    gemms_on_their_way<float, 4> addends[packets_max];
#pragma unroll
    for (unsigned i = 0; i < packets_max; ++i) {
      const std::uint32_t at = own + i * cut.threads;
      if (at >= all) continue;
      load_floats(x + at * 4, values[i]);
      if (of.from.added.parts > 0) addends[i] = gemms_on_their_way<float, 4>(of.from.added, t, at * 4);
    }
    float sum = 0, squares = 0;
#pragma unroll
    for (unsigned i = 0; i < packets_max; ++i) {
      const std::uint32_t at = own + i * cut.threads;
      if (at >= all) continue;
      if (of.from.added.parts > 0) addends[i].add_to(values[i], of.from.added.adds_each);
      store_floats(row + at * 4, values[i]);
      for (const float value : values[i]) sum += value;
    }
    std::uint32_t packets = 0;  // of this warp
#pragma unroll
    for (unsigned i = 0; i < packets_max; ++i) {
      const std::uint32_t begin = own / warp_width * warp_width + i * cut.threads;
      if (begin < all) packets += all - begin < warp_width ? all - begin : warp_width;
    }
    const auto count = static_cast<float>(4 * packets);
    const float mean = warp_sum(sum) / fmaxf(count, 1);
#pragma unroll
    for (unsigned i = 0; i < packets_max; ++i) {
      if (own + i * cut.threads >= all) continue;
      for (const float value : values[i]) squares = multiply_add(value - mean, value - mean, squares);
    }
    const float distances = warp_sum(squares);
    if (own % warp_width == 0) shares[own / warp_width] = {count, mean, distances};
  }
  __syncthreads();
  const unsigned of_lane = threadIdx.x % warps_max;
  const auto sum_of_warps = [](float value) {
    for (unsigned mask = warps_max / 2; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
    return value;
  };
  share_of_warp share{};
  if (of_lane < cut.threads / warp_width) share = shares[of_lane];
  const float mean = sum_of_warps(share.count * share.mean) / static_cast<float>(of.width), off = share.mean - mean;
  const float squares = sum_of_warps(multiply_add(share.count * off, off, share.squares));
  return {mean, inverse_root(squares / static_cast<float>(of.width) + layer_norm_eps)};
}

/// What the shift of four channels needs besides the row. Its loads are issued when it is made, before the row arrives.
struct shift_share {
  float weight[4], bias[4], mix[token_shifts_max][4];
  on_their_way<float, 4> x_prev;
  on_their_way<half, 4> x_prev_of_16_bits;

  shift_share() = default;
  __device__ shift_share(const token_shift_parameters& of, const void* kept, std::uint32_t channel) {
    if (of.kept_type == element::f32)
      x_prev = on_their_way<float, 4>(static_cast<const float*>(kept) + channel);
    else
      x_prev_of_16_bits = on_their_way<half, 4>(static_cast<const half*>(kept) + channel);
    load_floats(of.norm.weight + channel, weight);
    load_floats(of.norm.bias + channel, bias);
#pragma unroll
    for (std::uint32_t s = 0; s < token_shifts_max; ++s)
      if (s < of.shifts) load_floats(of.mix[s] + channel, mix[s]);
  }
};

/// Shifts four channels and replaces those of x_prev.
template <typename Element>
__device__ void shift_packet(const token_shift_parameters& of, std::uint32_t t, std::uint32_t channel,
                             const float (&sum)[4], const row_scale& norm, const shift_share& with, void* kept) {
  float now[4], before[4];
  for (unsigned e = 0; e < 4; ++e)
    now[e] = multiply_add((sum[e] - norm.mean) * norm.scale, with.weight[e], with.bias[e]);
  if (of.sum) store_floats(of.sum + static_cast<std::size_t>(t) * of.width + channel, sum);
  if (of.kept_type == element::f32) {
    with.x_prev.read(before);
    store_floats(static_cast<float*>(kept) + channel, now);
  } else {
    with.x_prev_of_16_bits.read(before);
    store_floats(static_cast<half*>(kept) + channel, now);
  }
#pragma unroll
  for (std::uint32_t s = 0; s < token_shifts_max; ++s) {
    if (s >= of.shifts) continue;
    float out[4];
    for (unsigned e = 0; e < 4; ++e) out[e] = multiply_add(before[e] - now[e], with.mix[s][e], now[e]);
    store_floats(static_cast<Element*>(of.out[s]) + static_cast<std::size_t>(t) * of.out_stride + channel, out);
  }
}

/// Does the work of block `block` of rows * cut.slices. Uses shift_bytes of dynamic shared memory.
template <typename Element>
__device__ void shift_slice(const device_batch& rows, const token_shift_parameters& of, const shift_cut& cut,
                            std::uint32_t block) {
  const std::uint32_t t = block / cut.slices, first = block % cut.slices * cut.packets;
  const std::uint32_t end = min(first + cut.packets, of.width / 4);
  const sequence_run run = rows.runs[t];  // beyond the count it is meaningless, but may be read
  if (t >= rows.counts->rows) return;
  // Weights of packets after the first one of each thread.
  constexpr std::uint32_t packets_of_line = line_bytes / 16;
  for (std::uint32_t at = first + leader_threads + threadIdx.x * packets_of_line; at < end;
       at += leader_threads * packets_of_line) {
    fetch_line(of.norm.weight + at * 4);
    fetch_line(of.norm.bias + at * 4);
    for (std::uint32_t s = 0; s < of.shifts; ++s) fetch_line(of.mix[s] + at * 4);
  }
  void* const kept = static_cast<char*>(of.x_prev) + run.slot * of.slot_bytes;
  std::uint32_t at = first + threadIdx.x;
  shift_share share;
  if (at < end) share = shift_share(of, kept, at * 4);
  float* const row = dynamic_shared<float>();
  const row_scale norm = load_whole_row(of, cut, t, row);
  while (at < end) {
    float sum[4];
    load_floats(row + at * 4, sum);
    shift_packet<Element>(of, t, at * 4, sum, norm, share, kept);
    at += leader_threads;
    if (at < end) share = shift_share(of, kept, at * 4);
  }
}

}  // namespace skein::kernels::gpu
