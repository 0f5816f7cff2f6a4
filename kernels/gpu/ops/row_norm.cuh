#pragma once
#include "kernels/gpu/device/gemm_rows.cuh"
#include "kernels/gpu/device/warp.cuh"
#include "kernels/gpu/ops/embed.hpp"

/// One row of the residual stream in the registers of a block.
namespace skein::kernels::gpu {

/// The threads of a block that normalises rows of that width. Depends on the width alone, because it determines the
/// order of the sums. A thread has two packets of four channels, or three above 4096.
[[nodiscard]] inline unsigned row_threads(std::uint32_t width) {
  const std::uint32_t wanted = (width / 8 + 63) / 64 * 64;
  return wanted < 64 ? 64 : wanted > 512 ? 512 : wanted;
}

/// This thread's channels of a row, in packets of four: number threadIdx.x, threadIdx.x + blockDim.x, ...
template <unsigned packets>
struct row_share {
  float values[packets][4];
};
/// Packets per thread: three above a width of 4096.
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

/// x[t] += the partial sums that are yet to be added, times the gate.
template <unsigned packets>
__device__ void add_to_row(row_share<packets>& row, const residual& from, std::uint32_t width, std::uint32_t t) {
  if (from.added.parts == 0) return;
  gemms_on_their_way<float, 4> addends[packets];
  for_each_packet<packets>(width, [&](unsigned i, std::uint32_t channel) {
    addends[i] = gemms_on_their_way<float, 4>(from.added, t, channel);
  });
  if (!from.gate)
    return for_each_packet<packets>(
        width, [&](unsigned i, std::uint32_t) { addends[i].add_to(row.values[i], from.added.adds_each); });
  for_each_packet<packets>(width, [&](unsigned i, std::uint32_t channel) {
    float gate[4], sums[4];
    load_floats(from.gate + static_cast<std::size_t>(t) * from.gate_stride + channel, gate);
    addends[i].read(sums);
    for (unsigned e = 0; e < 4; ++e) row.values[i][e] = multiply_add(gate[e], sums[e], row.values[i][e]);
  });
}

template <unsigned packets>
__device__ row_share<packets> load_row(const residual& from, std::uint32_t width, std::uint32_t t) {
  row_share<packets> row = load_x<packets>(from, width, t);
  add_to_row(row, from, width, t);
  return row;
}

/// A thread's share of a norm's weights.
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

/// The number of channels of a row that the threads of this warp have.
template <unsigned packets>
__device__ float warp_channels(std::uint32_t width) {
  const std::uint32_t first = threadIdx.x / warp_width * warp_width;
  std::uint32_t count = 0;
#pragma unroll
  for (unsigned i = 0; i < packets; ++i) {
    const std::uint32_t begin = first + i * blockDim.x, end = width / 4;
    if (begin < end) count += end - begin < warp_width ? end - begin : warp_width;
  }
  return static_cast<float>(4 * count);
}

/// row = (row - mean) / sqrt(variance + eps) * weight + bias
/// For several rows at once, with their statistics; all threads take part. Each warp computes the mean of its own
/// channels and the squared distances from it, which are then combined (Chan, Golub and LeVeque 1979), so that warps
/// wait for each other once instead of twice. The bits of a row do not depend on the number of rows.
template <unsigned packets, unsigned rows_each>
__device__ void normalise_together(row_share<packets> (&rows)[rows_each], std::uint32_t width,
                                   const norm_share<packets>& norm, float eps, row_statistics (&of_rows)[rows_each]) {
  struct share_of_warp {
    float count, mean, squares;
  };
  constexpr unsigned warps_max = 512 / warp_width;
  __shared__ share_of_warp of_warp[rows_each][warps_max];
  const float count = warp_channels<packets>(width);
  float means[rows_each], distances[rows_each];
#pragma unroll
  for (unsigned r = 0; r < rows_each; ++r) {
    float sum = 0, squares = 0;
    for_each_packet<packets>(width, [&](unsigned i, std::uint32_t) {
      for (const float value : rows[r].values[i]) sum += value;
    });
    const float mean = warp_sum(sum) / fmaxf(count, 1);
    for_each_packet<packets>(width, [&](unsigned i, std::uint32_t) {
      for (const float value : rows[r].values[i]) squares = multiply_add(value - mean, value - mean, squares);
    });
    means[r] = mean, distances[r] = warp_sum(squares);
  }
  __syncthreads();  // the previous contents have been read
  if (threadIdx.x % warp_width == 0)
    for (unsigned r = 0; r < rows_each; ++r) of_warp[r][threadIdx.x / warp_width] = {count, means[r], distances[r]};
  __syncthreads();
  // Each lane takes the share of one warp; lanes without a warp have an empty one.
  const unsigned of_lane = threadIdx.x % warps_max;
  const auto sum_of_warps = [](float value) {
    for (unsigned mask = warps_max / 2; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
    return value;
  };
#pragma unroll
  for (unsigned r = 0; r < rows_each; ++r) {
    share_of_warp share{};
    if (of_lane < blockDim.x / warp_width) share = of_warp[r][of_lane];
    const float mean = sum_of_warps(share.count * share.mean) / static_cast<float>(width), off = share.mean - mean;
    const float squares = sum_of_warps(multiply_add(share.count * off, off, share.squares));
    const float scale = inverse_root(squares / static_cast<float>(width) + eps);
    of_rows[r] = {mean, scale};
    for_each_packet<packets>(width, [&](unsigned i, std::uint32_t) {
      for (unsigned e = 0; e < 4; ++e)
        rows[r].values[i][e] =
            multiply_add((rows[r].values[i][e] - mean) * scale, norm.weight.values[i][e], norm.bias.values[i][e]);
    });
  }
}

template <unsigned packets, unsigned rows_each>
__device__ void normalise_together(row_share<packets> (&rows)[rows_each], std::uint32_t width,
                                   const norm_share<packets>& norm, float eps) {
  row_statistics ignored[rows_each];
  normalise_together(rows, width, norm, eps, ignored);
}

/// The same for one row; returns its statistics.
template <unsigned packets>
__device__ row_statistics normalise(row_share<packets>& row, std::uint32_t width, const norm_share<packets>& norm,
                                    float eps) {
  row_share<packets> rows[] = {row};
  row_statistics of_row[1];
  normalise_together(rows, width, norm, eps, of_row);
  row = rows[0];
  return of_row[0];
}

}  // namespace skein::kernels::gpu
