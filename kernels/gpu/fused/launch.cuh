#pragma once
#include <algorithm>

#include "kernels/gpu/fused/kernel.cuh"

/// How led_matmul launches its kernels; those for one kind of code have a file of their own.
namespace skein::kernels::gpu::mma {

struct led_launch {
  tile_launch what;
  const device_batch& rows;
  element state_type;
  const leader& first;
  std::uint32_t* counters;
};

/// Says what leads, and who waits for whom, when the products are placed.
void place_leader(const led_launch& led, led_gemms& all);

/// Up to this number of blocks, the emulator runs those of a launch together, so that a missing wait shows.
inline constexpr std::uint32_t emulated_blocks_max = 64;

/// Launches one of two kernels, of fp16 and bf16.
template <typename t>
result<void> launch_led_tiles(const led_launch& led, void (*of_halves)(led_gemms), void (*of_bf16)(led_gemms)) {
  led_gemms all{};
  place_gemms<t>(led.what, all);
  place_leader(led, all);
  const auto kernel = led.what.type == element::f16 ? of_halves : of_bf16;
  const std::size_t shared_bytes = share_of_sm(std::max(shared_bytes_for<t>(all), all.leader_bytes),
                                               all.leaders + all.items, true, led.what.profile);
  if (const auto r = allow_shared_bytes(kernel, shared_bytes); !r) return r;
  const std::uint32_t blocks = all.leaders + all.items;
  launch_shape shape{"led_matmul", {blocks}, {t::threads}, shared_bytes, led.what.in};
  shape.streamed = streamed_weights(led.what.gemms, led.what.rows, led.what.profile);
  if (runtime_is_emulated && blocks <= emulated_blocks_max) shape.cluster = blocks;
  return launch(shape, kernel, all);
}

/// start.operator()<t>() with the tiles for that number of rows.
template <typename Start>
result<void> launch_led(const led_launch& led, Start start) {
  return led.what.rows <= 8 ? start.template operator()<rows_8_tiles>() : start.template operator()<rows_16_tiles>();
}

/// For products of which some have weights quantised with that kind of code.
template <weight_element code>
result<void> launch_led_coded(const led_launch& led);

}  // namespace skein::kernels::gpu::mma
