#pragma once
#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/device/product_rows.cuh"
#include "kernels/gpu/embed.hpp"

/// One row of the residual stream in the registers of a block.
namespace skein::kernels::gpu {

inline constexpr std::uint32_t width_max = 6144;  ///< of a row that these hold

/// Threads of a block that normalises rows of that width: by the width alone, because the order of the sums hangs on
/// it. A thread has two packets of four channels, three above 4096.
[[nodiscard]] inline unsigned row_threads(std::uint32_t width) {
  const std::uint32_t wanted = (width / 8 + 63) / 64 * 64;
  return wanted < 64 ? 64 : wanted > 512 ? 512 : wanted;
}

/// This thread's channels of a row, in packets of four: number threadIdx.x, threadIdx.x + blockDim.x, ...
struct row_share {
  static constexpr unsigned packets = 3;
  float values[packets][4];
};

/// Calls body(i, first channel) for each packet of this thread.
template <typename Body>
__device__ void for_each_packet(std::uint32_t width, Body body) {
#pragma unroll
  for (unsigned i = 0; i < row_share::packets; ++i) {
    const std::uint32_t channel = (threadIdx.x + i * blockDim.x) * 4;
    if (channel < width) body(i, channel);
  }
}

/// x[t]
__device__ inline row_share load_x(const residual& from, std::uint32_t width, std::uint32_t t) {
  row_share row{};
  for_each_packet(width, [&](unsigned i, std::uint32_t channel) {
    load_floats(from.x + static_cast<std::size_t>(t) * width + channel, row.values[i]);
  });
  return row;
}

/// x[t] += what is to be added to it.
__device__ inline void add_to_row(row_share& row, const residual& from, std::uint32_t width, std::uint32_t t) {
  if (from.added.parts == 0) return;
  for_each_packet(width, [&](unsigned i, std::uint32_t channel) {
    float addends[4];
    load_products<float>(from.added, t, channel, addends);
    for (unsigned e = 0; e < 4; ++e) row.values[i][e] += addends[e];
  });
}

__device__ inline row_share load_row(const residual& from, std::uint32_t width, std::uint32_t t) {
  row_share row = load_x(from, width, t);
  add_to_row(row, from, width, t);
  return row;
}

/// row = (row - mean) / sqrt(variance + eps) * weight + bias; all threads take part.
__device__ inline void normalise(row_share& row, std::uint32_t width, const norm_weights& norm, float eps) {
  float sum = 0;
  for_each_packet(width, [&](unsigned i, std::uint32_t) {
    for (const float value : row.values[i]) sum += value;
  });
  const float mean = block_sum(sum) / static_cast<float>(width);
  float squares = 0;
  for_each_packet(width, [&](unsigned i, std::uint32_t) {
    for (const float value : row.values[i]) squares = multiply_add(value - mean, value - mean, squares);
  });
  const float scale = 1 / sqrtf(block_sum(squares) / static_cast<float>(width) + eps);
  for_each_packet(width, [&](unsigned i, std::uint32_t channel) {
    float weight[4], bias[4];
    load_floats(norm.weight + channel, weight);
    load_floats(norm.bias + channel, bias);
    for (unsigned e = 0; e < 4; ++e)
      row.values[i][e] = multiply_add((row.values[i][e] - mean) * scale, weight[e], bias[e]);
  });
}

}  // namespace skein::kernels::gpu
