#pragma once
#include <algorithm>
#include <bit>

#include "kernels/gpu/runtime/emulator/emulator.hpp"
#include "kernels/gpu/runtime/emulator/fibers.hpp"

/// What device/mma.cuh is made of in the emulator.
namespace skein::kernels::gpu::emulator {

/// Whether operands are rounded. A test that wants to see an algorithm without its rounding switches it off.
inline thread_local bool operands_round = true;

/// To an fp16; beyond it to its largest value.
inline float as_operand(float value) {
  if (!operands_round) return value;
  return half_to_float(float_to_half(std::clamp(value, -65504.0f, 65504.0f)));
}

inline std::uint64_t both(const float (&pair)[2]) {
  return std::bit_cast<std::uint32_t>(pair[0]) | std::uint64_t{std::bit_cast<std::uint32_t>(pair[1])} << 32;
}
inline float one_of(std::uint64_t both, unsigned which) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(both >> 32 * which));
}

/// c += a b in the layout of device/mma.cuh, sums in order of k.
inline void multiply_tiles(float (&c)[4], const float (&a)[4][2], const float (&b)[2][2],
                           const std::source_location& where = std::source_location::current()) {
  auto& runner = block_runner::of_this_thread();
  const unsigned lane = runner.lane(), g = lane / 4, t = lane % 4;
  float rows[2][16], columns[2][16];
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint64_t* const of_a = runner.exchange(both(a[i]), where);
    for (unsigned k = 0; k < 8; ++k) rows[i % 2][i / 2 * 8 + k] = one_of(of_a[4 * g + k / 2], k % 2);
  }
  for (unsigned i = 0; i < 2; ++i) {
    const std::uint64_t* const of_b = runner.exchange(both(b[i]), where);
    for (unsigned column = 0; column < 2; ++column)
      for (unsigned k = 0; k < 8; ++k) columns[column][i * 8 + k] = one_of(of_b[4 * (2 * t + column) + k / 2], k % 2);
  }
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned k = 0; k < 16; ++k) c[i] += rows[i / 2][k] * columns[i % 2][k];
}

/// Of 8 x 8 numbers a lane gives row g, columns 2t and 2t + 1, and gets them of the transpose.
inline void transpose(float first, float second, float& first_turned, float& second_turned,
                      const std::source_location& where = std::source_location::current()) {
  auto& runner = block_runner::of_this_thread();
  const unsigned lane = runner.lane(), g = lane / 4, t = lane % 4;
  const std::uint64_t* const all = runner.exchange(both({first, second}), where);
  first_turned = one_of(all[4 * (2 * t) + g / 2], g % 2);
  second_turned = one_of(all[4 * (2 * t + 1) + g / 2], g % 2);
}

}  // namespace skein::kernels::gpu::emulator
