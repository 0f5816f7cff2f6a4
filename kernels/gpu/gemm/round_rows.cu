// A block rounds a row: each thread keeps its numbers in registers while the block finds the largest one.
//
// Floor, in bytes per row: 3 * width, which are in the L2 cache as long as the activations of a tick are.
#include "kernels/gpu/gemm/round_rows.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/device/vec.cuh"
#include "kernels/gpu/device/warp.cuh"
#include "kernels/weights/e4m3.hpp"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned at_once = 8, round_threads_max = 512;

/// Rows that are rounded, at most one for each product of a launch.
struct rounded_inputs {
  struct one {
    const void* from;
    rounded_rows to;
    std::uint32_t width, stride, bytes;  // bytes: of a rounded row, with the zeros at its end
  };
  one of[gemms_max_of_turn];
  std::uint32_t count;
};

__device__ float power_of_two(int exponent) { return bits_to_float(static_cast<std::uint32_t>(exponent + 127) << 23); }

/// A row's scale and its inverse. NaN for rows with infinity.
struct row_scale {
  float scale, inverse;

  __device__ explicit row_scale(float largest) {
    const std::uint32_t bits = float_to_bits(largest * (1 / e4m3_max));
    const int next = static_cast<int>(bits >> 23) - 127 + ((bits & 0x7fffff) != 0 ? 1 : 0);
    const int exponent = next < -100 ? -100 : next;  // a row of zeros has any
    const bool is_finite = exponent <= 120;
    scale = is_finite ? power_of_two(exponent) : bits_to_float(0x7fc00000);
    inverse = is_finite ? power_of_two(-exponent) : 0;
  }
};

/// Eight codes, the first in the lowest byte.
struct alignas(8) eight_codes {
  std::uint32_t words[2];
};
__device__ eight_codes to_e4m3(const float (&values)[at_once]) {
  eight_codes codes{};
#pragma unroll
  for (unsigned i = 0; i < at_once; i += 2) {
    std::uint32_t pair = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    std::uint16_t both;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %2, %1;" : "=h"(both) : "f"(values[i]), "f"(values[i + 1]));
    pair = both;
#else
    pair = f32_to_e4m3(values[i]) | static_cast<std::uint32_t>(f32_to_e4m3(values[i + 1])) << 8;
#endif
    codes.words[i / 4] |= pair << (i % 4 * 8);
  }
  return codes;
}

/// The largest of all threads' numbers.
__device__ float largest_of_block(float mine) {
  __shared__ float of_warps[round_threads_max / warp_width];
  for (unsigned mask = warp_width / 2; mask > 0; mask /= 2) mine = fmaxf(mine, shuffle_xor(mine, mask));
  if (threadIdx.x % warp_width == 0) of_warps[threadIdx.x / warp_width] = mine;
  __syncthreads();
  float largest = of_warps[0];
  for (unsigned warp = 1; warp < blockDim.x / warp_width; ++warp) largest = fmaxf(largest, of_warps[warp]);
  return largest;
}

/// `packets`: of a thread, of eight numbers each.
template <typename Element, unsigned packets>
__global__ void __launch_bounds__(round_threads_max)
    round_rows_kernel(rounded_inputs all, const std::uint32_t* row_count) {
  pdl_launch_dependents();
  const rounded_inputs::one& p = all.of[blockIdx.y];
  const std::uint32_t t = blockIdx.x;
  pdl_wait();
  if (t >= *row_count) return;
  const auto* const from = static_cast<const Element*>(p.from) + static_cast<std::size_t>(t) * p.stride;
  float values[packets][at_once] = {};
  float largest = 0;
#pragma unroll
  for (unsigned i = 0; i < packets; ++i) {
    const std::uint32_t c = (i * blockDim.x + threadIdx.x) * at_once;
    if (c < p.width) load_floats(from + c, values[i]);
    for (const float value : values[i]) largest = fmaxf(largest, fabsf(value));
  }
  const row_scale of_row(largest_of_block(largest));
  if (threadIdx.x == 0) p.to.scales[t] = of_row.scale;
  std::byte* const to = p.to.codes + static_cast<std::size_t>(t) * p.bytes;
#pragma unroll
  for (unsigned i = 0; i < packets; ++i) {
    const std::uint32_t c = (i * blockDim.x + threadIdx.x) * at_once;
    if (c >= p.bytes) continue;
    for (float& value : values[i]) value *= of_row.inverse;
    *reinterpret_cast<eight_codes*>(to + c) = to_e4m3(values[i]);
  }
}

}  // namespace

result<void> round_rows(stream_handle in, element type, std::span<const gemm> gemms, const std::uint32_t* row_count,
                        std::uint32_t rows_room) {
  rounded_inputs all{};
  std::uint32_t widest = 0;
  for (const gemm& p : gemms) {
    if (!rounds_inputs(p)) continue;
    const auto known = std::span(all.of).first(all.count);
    const bool is_known = std::ranges::any_of(known, [&](const auto& one) { return one.to.codes == p.rounded.codes; });
    if (is_known) continue;
    check(all.count < gemms_max_of_turn);
    const std::uint32_t bytes = p.matrix.depth() * p.matrix.tile_inputs();
    all.of[all.count++] = {p.in, p.rounded, padded(p.matrix.inputs), p.in_stride, bytes};
    widest = std::max(widest, bytes);
  }
  const auto start = [&]<typename Element>() -> result<void> {
    const auto launch_with = [&]<unsigned packets>() {
      const std::uint32_t threads = (widest / at_once + packets - 1) / packets;
      const launch_shape shape{"round_rows", {rows_room, all.count}, {(threads + 63) / 64 * 64}, 0, in, true};
      return launch(shape, round_rows_kernel<Element, packets>, all, row_count);
    };
    if (widest <= at_once * round_threads_max) return launch_with.template operator()<1>();
    if (widest <= 4 * at_once * round_threads_max) return launch_with.template operator()<4>();
    static_assert(rounded_inputs_max == 16 * at_once * round_threads_max);
    check(widest <= rounded_inputs_max);
    return launch_with.template operator()<16>();
  };
  check(type != element::f32);
  return type == element::f16 ? start.template operator()<half>() : start.template operator()<bf16>();
}

}  // namespace skein::kernels::gpu
