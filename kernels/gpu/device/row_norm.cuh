#pragma once
#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/device/product_rows.cuh"
#include "kernels/gpu/embed.hpp"

/// One row of the residual stream in the registers of a block.
namespace skein::kernels::gpu {

/// Threads of a block that normalises rows of that width: by the width alone, because the order of the sums hangs on
/// it. A thread has two packets of four channels, three above 4096.
[[nodiscard]] inline unsigned row_threads(std::uint32_t width) {
  const std::uint32_t wanted = (width / 8 + 63) / 64 * 64;
  return wanted < 64 ? 64 : wanted > 512 ? 512 : wanted;
}

/// This thread's channels of a row, in packets of four: number threadIdx.x, threadIdx.x + blockDim.x, ...
template <unsigned packets>
struct row_share {
  float values[packets][4];
};
/// Packets of a thread: three above a width of 4096.
[[nodiscard]] constexpr unsigned packets_of(std::uint32_t width) { return width <= 4096 ? 2 : 3; }

/// Calls body(i, first channel) for each packet of this thread.
template <unsigned packets, typename Body>
__device__ void for_each_packet(std::uint32_t width, Body body) {
#pragma unroll
  for (unsigned i = 0; i < packets; ++i) {
    const std::uint32_t channel = (threadIdx.x + i * blockDim.x) * 4;
    if (channel < width) body(i, channel);
  }
}

/// x[t]
template <unsigned packets>
__device__ row_share<packets> load_x(const residual& from, std::uint32_t width, std::uint32_t t) {
  row_share<packets> row{};
  for_each_packet<packets>(width, [&](unsigned i, std::uint32_t channel) {
    load_floats(from.x + static_cast<std::size_t>(t) * width + channel, row.values[i]);
  });
  return row;
}

/// x[t] += what is to be added to it.
template <unsigned packets>
__device__ void add_to_row(row_share<packets>& row, const residual& from, std::uint32_t width, std::uint32_t t) {
  if (from.added.parts == 0) return;
  products_on_their_way<float, 4> addends[packets];
  for_each_packet<packets>(width, [&](unsigned i, std::uint32_t channel) {
    addends[i] = products_on_their_way<float, 4>(from.added, t, channel);
  });
  for_each_packet<packets>(width, [&](unsigned i, std::uint32_t) {
    float sums[4];
    addends[i].read(sums);
    for (unsigned e = 0; e < 4; ++e) row.values[i][e] += sums[e];
  });
}

template <unsigned packets>
__device__ row_share<packets> load_row(const residual& from, std::uint32_t width, std::uint32_t t) {
  row_share<packets> row = load_x<packets>(from, width, t);
  add_to_row(row, from, width, t);
  return row;
}

/// A thread's part of a norm's weights.
template <unsigned packets>
struct norm_share {
  row_share<packets> weight, bias;

  norm_share() = default;
  __device__ norm_share(const norm_weights& norm, std::uint32_t width) {
    for_each_packet<packets>(width, [&](unsigned i, std::uint32_t channel) {
      load_floats(norm.weight + channel, weight.values[i]);
      load_floats(norm.bias + channel, bias.values[i]);
    });
  }
};

/// row = (row - mean) / sqrt(variance + eps) * weight + bias; all threads take part.
template <unsigned packets>
__device__ void normalise(row_share<packets>& row, std::uint32_t width, const norm_share<packets>& norm, float eps) {
  float sum = 0;
  for_each_packet<packets>(width, [&](unsigned i, std::uint32_t) {
    for (const float value : row.values[i]) sum += value;
  });
  const float mean = block_sum(sum) / static_cast<float>(width);
  float squares = 0;
  for_each_packet<packets>(width, [&](unsigned i, std::uint32_t) {
    for (const float value : row.values[i]) squares = multiply_add(value - mean, value - mean, squares);
  });
  const float scale = 1 / sqrtf(block_sum(squares) / static_cast<float>(width) + eps);
  for_each_packet<packets>(width, [&](unsigned i, std::uint32_t) {
    for (unsigned e = 0; e < 4; ++e)
      row.values[i][e] =
          multiply_add((row.values[i][e] - mean) * scale, norm.weight.values[i][e], norm.bias.values[i][e]);
  });
}

}  // namespace skein::kernels::gpu
