#pragma once
#include "kernels/gpu/gemm/measure_tiles.hpp"
#include "kernels/gpu/gemm/tuned_matmul.hpp"

namespace skein::kernels::gpu {

/// The product that measure_tiles times: [rows, inputs] by [outputs, inputs].
struct tile_probe {
  std::uint32_t outputs = 4096, inputs = 4096, rows = 2048;
};

/// measure_tiles with another product and clock, for tests.
[[nodiscard]] result<tile_times> measure_tiles(int device, element type, const tile_probe& probe,
                                               const stopwatch& watch);

}  // namespace skein::kernels::gpu
