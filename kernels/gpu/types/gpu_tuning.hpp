#pragma once
#include <array>
#include <cstdint>
#include <optional>

namespace skein::kernels::gpu {

/// The shapes of tiles of the GEMM for more than 64 rows, without wgmma: 64 x 64, 64 x 128, 128 x 128, 128 x 192 and
/// 128 x 256 outputs by rows.
inline constexpr std::array<const char*, 5> tile_names = {"small", "flat", "square", "broad", "wide"};

/// The time of an SM for a tile of each shape by 64 inputs, in us. 0: not known.
using tile_times = std::array<double, tile_names.size()>;

/// What is best for a model on a card, as `skein tune` measured it. Each member may be absent, and then a rule of the
/// code holds.
struct gpu_tuning {
  /// The blocks of a launch of few rows that an SM runs at once; matrices are cut into segments accordingly. 0: absent.
  /// Other segments are added in another order, so the bits of results depend on it.
  double blocks_per_sm = 0;
  /// Up to this number of rows, kernels that follow each other share launches (fused/led_matmul.hpp).
  std::optional<std::uint32_t> led_rows;
  tile_times tile_us = {};
  bool operator==(const gpu_tuning&) const = default;
};

/// What blocks_per_sm may be.
inline constexpr double blocks_per_sm_min = 0.25, blocks_per_sm_max = 16;

}  // namespace skein::kernels::gpu
