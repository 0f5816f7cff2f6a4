#pragma once
#include "kernels/gpu/device/vec.cuh"
#include "kernels/gpu/time_mix.hpp"

namespace skein::kernels::gpu {

/// A head lies in parts of 8 KiB, of so many values each: of all with 16-bit numbers.
template <typename Stored>
inline constexpr std::uint32_t values_of_part = head_size * 2 / sizeof(Stored);

/// Where S[value, key] of one head lies: in its part, keys in packets of 16 bytes, for each packet the values side by
/// side. A thread that owns a value moves packets, and neighbouring threads neighbouring ones. Of eight neighbouring
/// values each packet has another order (value xor packet): so lanes that have packets of one value meet in no bank
/// when a part lies in shared memory as it is.
template <typename Stored>
__device__ std::uint32_t head_state_index(std::uint32_t value, std::uint32_t key) {
  constexpr std::uint32_t size = packet<Stored>::size, values = values_of_part<Stored>;
  const std::uint32_t column = key / size, first = (value / values * (head_size / size) + column) * values;
  return (first + (value % values ^ column % 8)) * size + key % size;
}

}  // namespace skein::kernels::gpu
