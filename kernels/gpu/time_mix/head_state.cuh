#pragma once
#include "kernels/gpu/device/vec.cuh"
#include "kernels/gpu/time_mix/time_mix.hpp"

namespace skein::kernels::gpu {

/// A head is stored in parts of 8 KiB. This is the number of values in each; with 16-bit elements one part holds all.
template <typename Stored>
inline constexpr std::uint32_t values_of_part = head_size * 2 / sizeof(Stored);

/// The index of S[value, key] within one head. A part stores keys in packets of 16 bytes and, for each packet, its
/// values side by side. A thread that owns a value transfers packets, and neighbouring threads access neighbouring
/// packets. Each packet permutes eight neighbouring values (value xor packet), so that lanes that access packets of one
/// value have no bank conflicts if a part is copied to shared memory unchanged.
template <typename Stored>
__device__ std::uint32_t head_state_index(std::uint32_t value, std::uint32_t key) {
  constexpr std::uint32_t size = packet<Stored>::size, values = values_of_part<Stored>;
  const std::uint32_t column = key / size, first = (value / values * (head_size / size) + column) * values;
  return (first + (value % values ^ column % 8)) * size + key % size;
}

}  // namespace skein::kernels::gpu
