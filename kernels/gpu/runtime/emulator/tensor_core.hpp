#pragma once
#include <bit>
#include <cstring>

#include "kernels/gpu/runtime/emulator/fibers.hpp"

/// What device/mma.cuh is made of in the emulator.
namespace skein::kernels::gpu::emulator {

/// Whether as_tf32 rounds. A test that wants to see an algorithm without its rounding switches it off.
inline thread_local bool tf32_rounds = true;

/// To 10 bits behind the point, ties away from zero, as cvt.rna does.
inline float as_tf32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (!tf32_rounds || (bits & 0x7f800000u) == 0x7f800000u) return value;
  return std::bit_cast<float>((bits + 0x1000u) & ~0x1fffu);
}

/// c += a b in the layout of device/mma.cuh, sums in order of k.
inline void multiply_tiles(float (&c)[4], const float (&a)[4], const float (&b)[2],
                           const std::source_location& where = std::source_location::current()) {
  auto& runner = block_runner::of_this_thread();
  const auto pair = [](float low, float high) {
    return std::bit_cast<std::uint32_t>(low) | std::uint64_t{std::bit_cast<std::uint32_t>(high)} << 32;
  };
  const auto low = [](std::uint64_t both) { return std::bit_cast<float>(static_cast<std::uint32_t>(both)); };
  const auto high = [](std::uint64_t both) { return std::bit_cast<float>(static_cast<std::uint32_t>(both >> 32)); };
  const unsigned lane = runner.lane(), g = lane / 4, t = lane % 4;
  float rows[2][8], columns[2][8];
  for (unsigned half = 0; half < 2; ++half) {
    const std::uint64_t* const of_a = runner.exchange(pair(a[2 * half], a[2 * half + 1]), where);
    for (unsigned k = 0; k < 4; ++k) {
      rows[0][4 * half + k] = low(of_a[4 * g + k]);
      rows[1][4 * half + k] = high(of_a[4 * g + k]);
    }
  }
  const std::uint64_t* const of_b = runner.exchange(pair(b[0], b[1]), where);
  for (unsigned column = 0; column < 2; ++column)
    for (unsigned k = 0; k < 4; ++k) {
      columns[column][k] = low(of_b[4 * (2 * t + column) + k]);
      columns[column][4 + k] = high(of_b[4 * (2 * t + column) + k]);
    }
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned k = 0; k < 8; ++k) c[i] += rows[i / 2][k] * columns[i % 2][k];
}

}  // namespace skein::kernels::gpu::emulator
