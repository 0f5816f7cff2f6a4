#pragma once
#include "kernels/gpu/device/vec.cuh"
#include "kernels/gpu/types/gemm_rows.hpp"

namespace skein::kernels::gpu {

/// Outputs `channel` .. `channel` + count of a row of a GEMM. The constructor issues the loads and read() waits for
/// them, so that several can be in flight. `Element` is the type of the rows, or the type to which the sums are
/// rounded. `channel`, `stride` and `part_stride` are multiples of `count`.
template <typename Element, unsigned count>
struct gemms_on_their_way {
  on_their_way<Element, count> rounded;
  side_by_side<float, count> addends[gemm_parts_max];
  std::uint32_t parts;

  gemms_on_their_way() = default;
  __device__ gemms_on_their_way(const gemm_rows& of, std::uint32_t row, std::uint32_t channel) : parts(of.parts) {
    const std::size_t at = static_cast<std::size_t>(row) * of.stride + channel;
    if (parts == 0) rounded = on_their_way<Element, count>(static_cast<const Element*>(of.data) + at);
#pragma unroll
    for (std::uint32_t p = 0; p < gemm_parts_max; ++p)
      if (p < parts)
        addends[p] = load_side_by_side<count>(static_cast<const float*>(of.data) + p * of.part_stride + at);
  }

  __device__ void read(float (&values)[count]) const {
    if (parts == 0) return rounded.read(values);
    for (unsigned i = 0; i < count; ++i) values[i] = addends[0].values[i];
#pragma unroll
    for (std::uint32_t p = 1; p < gemm_parts_max; ++p)
      if (p < parts)
        for (unsigned i = 0; i < count; ++i) values[i] += addends[p].values[i];
    for (unsigned i = 0; i < count; ++i) values[i] = to_float(from_float<Element>(values[i]));
  }

  /// values += what read() gives, or each partial sum by itself.
  __device__ void add_to(float (&values)[count], bool adds_each) const {
    if (adds_each) {
#pragma unroll
      for (std::uint32_t p = 0; p < gemm_parts_max; ++p)
        if (p < parts)
          for (unsigned i = 0; i < count; ++i) values[i] += addends[p].values[i];
      return;
    }
    float sums[count];
    read(sums);
    for (unsigned i = 0; i < count; ++i) values[i] += sums[i];
  }
};

template <typename Element, unsigned count>
__device__ void load_gemms(const gemm_rows& of, std::uint32_t row, std::uint32_t channel, float (&values)[count]) {
  gemms_on_their_way<Element, count>(of, row, channel).read(values);
}

}  // namespace skein::kernels::gpu
