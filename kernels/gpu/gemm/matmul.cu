// The plain GEMM: a block computes a tile of 64 outputs by 16 or 64 rows and steps through the inputs 64 at a time in
// shared memory; a thread keeps 4 outputs by 1 or 4 rows in registers. It is the reference for the tensor core kernels,
// and runs on devices that have none.
#include "kernels/gpu/gemm/matmul.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "kernels/gpu/device/codes.cuh"
#include "kernels/gpu/device/vec.cuh"
#include "kernels/gpu/gemm/epilogue.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned matmul_threads = 256;
constexpr unsigned lanes = 16;  // of a block along each side of its tile
constexpr unsigned outputs_each = matrix_tile / lanes;
constexpr unsigned pitch = matrix_tile + 1;  // odd: a column of a tile is spread over the banks

/// The products of a launch; block x belongs to the last product whose first_block is at most x.
struct gemm_list {
  gemm of[gemms_max_of_turn];
  std::uint32_t first_block[gemms_max_of_turn];
  std::uint32_t count;
};

template <typename Element>
__device__ void put(const gemm& p, std::size_t at, float sum) {
  const float result = apply_activation(p.how.function, sum);
  if (p.how.to == destination::add_f32)
    static_cast<float*>(p.out)[at] += result;
  else if (p.how.to == destination::f32)
    static_cast<float*>(p.out)[at] = result;
  else if (p.how.to == destination::f16)
    static_cast<half*>(p.out)[at] = from_float<half>(result);
  else
    static_cast<Element*>(p.out)[at] = from_float<Element>(result);
}

/// Copies rows `first` .. `first` + tile_rows, columns `column` .. `column` + 64, into a tile; rows from `end` on are
/// 0.
template <unsigned tile_rows, typename Element>
__device__ void load_tile(float (*tile)[pitch], const void* from, std::uint32_t stride, std::uint32_t first,
                          std::uint32_t end, std::uint32_t column) {
  constexpr unsigned packets = matrix_tile / packet<Element>::size;  // of a row
  for (unsigned p = threadIdx.x; p < tile_rows * packets; p += matmul_threads) {
    const unsigned r = p / packets, c = p % packets * packet<Element>::size;
    packet<Element> values = {};
    if (first + r < end)
      values =
          load_packet(static_cast<const Element*>(from) + static_cast<std::size_t>(first + r) * stride + column + c);
    for (unsigned i = 0; i < packet<Element>::size; ++i) tile[r][c + i] = to_float(values.values[i]);
  }
}

/// The same for 64 outputs of a quantised matrix.
template <typename Element, weight_element code>
__device__ void decode_tile(float (*tile)[pitch], const device_matrix& m, std::uint32_t first, std::uint32_t column) {
  const std::uint32_t blocks = padded(m.inputs) / block_inputs, bytes = block_bytes(m.format);
  for (unsigned i = threadIdx.x; i < matrix_tile * matrix_tile; i += matmul_threads) {
    const std::uint32_t r = i / matrix_tile, c = i % matrix_tile, output = r % panel_outputs;
    const std::byte* const block = static_cast<const std::byte*>(m.data) +
                                   (std::size_t{first + r} / panel_outputs * blocks + column / block_inputs) * bytes;
    const code_place at = place_of_code(code, output, c);
    int q = static_cast<int>(block[at.byte]) >> at.bit & (code_bits(code) == 8 ? 255 : 15);
    if (code == weight_element::int4) q -= 8;
    if (code == weight_element::int8) q -= 128;
    if (code == weight_element::fp8) q = (q & 127) | (static_cast<int>(block[byte_of_sign(at.byte)]) & 128);
    scale_pair scale = 0;
    memcpy(&scale, block + place_of_scale(m.format, output, c), 2);
    tile[r][c] = to_float(decode_one<Element, code>(q, scale_of<Element>(scale, 0)));
  }
}
template <typename Element>
__device__ void load_weights(float (*tile)[pitch], const device_matrix& m, std::uint32_t first, std::uint32_t column) {
  if (!m.format.quantised())
    return load_tile<matrix_tile, Element>(tile, m.data, padded(m.inputs), first, padded(m.outputs), column);
  switch (m.format.element) {
    case weight_element::int8: return decode_tile<Element, weight_element::int8>(tile, m, first, column);
    case weight_element::int4: return decode_tile<Element, weight_element::int4>(tile, m, first, column);
    case weight_element::fp8: return decode_tile<Element, weight_element::fp8>(tile, m, first, column);
    default: return decode_tile<Element, weight_element::nf4>(tile, m, first, column);
  }
}

template <typename Element, unsigned rows_each>
__global__ void __launch_bounds__(matmul_threads) matmul_kernel(gemm_list gemms, const std::uint32_t* row_count) {
  constexpr unsigned tile_rows = lanes * rows_each;
  __shared__ float weights[matrix_tile][pitch];  // [output, input]
  __shared__ float inputs[tile_rows][pitch];     // [row, input]
  const std::uint32_t rows = *row_count, first_row = blockIdx.y * tile_rows;
  if (first_row >= rows) return;
  std::uint32_t which = gemms.count - 1;
  while (blockIdx.x < gemms.first_block[which]) --which;
  const gemm p = gemms.of[which];
  const std::uint32_t first_output = (blockIdx.x - gemms.first_block[which]) * matrix_tile;
  const unsigned column = threadIdx.x % lanes, line = threadIdx.x / lanes;
  const std::uint32_t depth = padded(p.matrix.inputs);

  const std::uint32_t segment = segment_tiles(p) * matrix_tile;
  float sums[rows_each][outputs_each] = {}, done[rows_each][outputs_each] = {};
  const auto end_segment = [&](std::uint32_t number) {
    for (unsigned r = 0; r < rows_each; ++r)
      for (unsigned o = 0; o < outputs_each; ++o) {
        const std::uint32_t row = first_row + line + r * lanes, output = first_output + column + o * lanes;
        if (p.how.to == destination::parts && row < rows && output < p.matrix.outputs)
          static_cast<float*>(p.out)[number * p.part_stride + static_cast<std::size_t>(row) * p.out_stride + output] =
              sums[r][o];
        done[r][o] = number == 0 ? sums[r][o] : done[r][o] + sums[r][o];
        sums[r][o] = 0;
      }
  };
  for (std::uint32_t k = 0; k < depth; k += matrix_tile) {
    if (k > 0 && k % segment == 0) end_segment(k / segment - 1);
    __syncthreads();  // the previous tiles have been read
    load_weights<Element>(weights, p.matrix, first_output, k);
    load_tile<tile_rows, Element>(inputs, p.in, p.in_stride, first_row, rows, k);
    __syncthreads();
    for (unsigned i = 0; i < matrix_tile; ++i)
      for (unsigned r = 0; r < rows_each; ++r)
        for (unsigned o = 0; o < outputs_each; ++o)
          sums[r][o] = multiply_add(weights[column + o * lanes][i], inputs[line + r * lanes][i], sums[r][o]);
  }
  end_segment((depth - 1) / segment);
  if (p.how.to == destination::parts) return;

  for (unsigned r = 0; r < rows_each; ++r)
    for (unsigned o = 0; o < outputs_each; ++o) {
      const std::uint32_t row = first_row + line + r * lanes, output = first_output + column + o * lanes;
      if (row < rows && output < p.matrix.outputs)
        put<Element>(p, static_cast<std::size_t>(row) * p.out_stride + output, done[r][o]);
    }
}

}  // namespace

result<void> matmul(stream_handle in, element type, std::span<const gemm> gemms, const std::uint32_t* row_count,
                    std::uint32_t rows_room) {
  check_gemms(type, gemms);
  if (has_turns(gemms))
    return in_two_launches(gemms, [&](auto some) { return matmul(in, type, some, row_count, rows_room); });
  gemm_list list{};
  std::uint32_t blocks = 0;
  for (const gemm& p : gemms) {
    list.first_block[list.count] = blocks;
    list.of[list.count++] = p;
    blocks += padded(p.matrix.outputs) / matrix_tile;
  }
  const auto launch_tiles = [&](auto kernel, std::uint32_t tile_rows) {
    return launch({"matmul", {blocks, (rows_room + tile_rows - 1) / tile_rows}, {matmul_threads}, 0, in}, kernel, list,
                  row_count);
  };
  // The height of a tile does not change any bit: every sum is computed by one thread, in one order.
  return with_element(type, [&]<typename Element>() {
    return rows_room <= lanes ? launch_tiles(matmul_kernel<Element, 1>, lanes)
                              : launch_tiles(matmul_kernel<Element, 4>, 4 * lanes);
  });
}

bool is_in_turn(std::span<const gemm> gemms) {
  const auto independent_of = independent(gemms), second = gemms.subspan(independent_of.size());
  if (independent_of.size() > gemms_max_of_turn || second.size() > gemms_max_of_turn) return false;
  if (second.empty()) return true;
  const auto is_first = [](const gemm& p) { return p.when == turn::first; };
  const auto is_awaited_in_parts = [&](const gemm& p) { return is_first(p) && p.how.to == destination::parts; };
  return std::ranges::is_partitioned(independent_of, is_first) &&
         std::ranges::none_of(independent_of, is_awaited_in_parts) && std::ranges::all_of(second, [&](const gemm& p) {
           return p.when == turn::second && p.segments == 1 && p.matrix.outputs == second.front().matrix.outputs &&
                  p.done && p.done == second.front().done;
         });
}

void check_gemms(element type, std::span<const gemm> gemms) {
  check(!gemms.empty());
  check(is_in_turn(gemms));
  for (const gemm& p : gemms) {
    check(is_quantised(p) || p.matrix.format == row_format(type));
    check(p.in_stride >= padded(p.matrix.inputs));
    check((p.segments - 1) * segment_tiles(p) < p.matrix.depth());
    check(!rounds_inputs(p) || (p.rounded.codes && p.rounded.scales));
    const bool of_sums = p.how.to == destination::add_f32 || p.how.to == destination::parts;
    check(!of_sums || p.how.function == activation_function::none);
  }
}

matmul_functions plain_matmul() {
  return {"plain", matmul, [](std::span<const gemm>, std::uint32_t rows_room) { return rows_room <= 8; }};
}

}  // namespace skein::kernels::gpu
