#pragma once
#include "kernels/gpu/device/vec.cuh"
#include "kernels/gpu/time_mix.hpp"

namespace skein::kernels::gpu {

/// Where S[value, key] of one head lies: keys in packets of 16 bytes, for each packet the values side by side. A thread
/// that owns a value moves packets, and neighbouring threads neighbouring ones.
template <typename Stored>
__device__ std::uint32_t head_state_index(std::uint32_t value, std::uint32_t key) {
  constexpr std::uint32_t size = packet<Stored>::size;
  return (key / size * head_size + value) * size + key % size;
}

}  // namespace skein::kernels::gpu
