// A warp decodes a block of 16 outputs by 64 inputs: its lanes load the words of the block, which are operands of
// matrix instructions, and exchange them through shared memory, so that each line of 128 bytes is written as a whole.
//
// Floor: bytes of codes, scales and rows / bandwidth.
#include "kernels/gpu/gemm/decode_rows.hpp"

#include <array>

#include "base/check.hpp"
#include "kernels/gpu/device/codes.cuh"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/device/vec.cuh"
#include "kernels/gpu/device/warp.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned warps_each = 8, decode_threads = warps_each * 32;

struct decoded_matrix {
  const std::byte* blocks;
  std::byte* rows;
  std::uint32_t block_bytes, scale_step, width;  // scale_step: 0 if a block has one group of inputs
  weight_element code;
};
struct decoded_matrices {
  decoded_matrix of[gemms_max_of_turn];
  std::uint32_t first[gemms_max_of_turn];  // block
  std::uint32_t count, blocks;
};

/// A block's rows in shared memory, apart enough that the lanes of a store use all banks.
struct alignas(16) decoded_block {
  static constexpr std::uint32_t line = block_inputs * 2, pitch = line + 16;
  std::byte of[panel_outputs * pitch];
};

template <typename Element, weight_element code>
__device__ void decode_block(const decoded_matrix& m, const std::byte* block, decoded_block& rows) {
  const unsigned lane = threadIdx.x % 32;
  const decoder<Element, code> decode;
  const auto get = [&](unsigned at) { return load_once(block + at); };
  code_words<code> words[2][2];
#pragma unroll
  for (unsigned two_steps = 0; two_steps < 2; ++two_steps)
#pragma unroll
    for (unsigned upper = 0; upper < 2; ++upper)
      words[two_steps][upper] = load_words<code>(two_steps, upper, lane, get);
  const std::byte* const scales = block + code_bytes_of_block(code) + lane / 4 * sizeof(scale_pair);
#pragma unroll
  for (unsigned step = 0; step < 4; ++step) {
    std::uint32_t of_step[4];
    decode(words[step / 2], step % 2, load_once(scales + step / 2 * m.scale_step), of_step);
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = lane / 4 + i % 2 * 8, word = step * 8 + i / 2 * 4 + lane % 4;
      memcpy(rows.of + row * decoded_block::pitch + word * 4, &of_step[i], 4);
    }
  }
}

template <typename Element>
__global__ void __launch_bounds__(decode_threads) decode_rows_kernel(const __grid_constant__ decoded_matrices all) {
  __shared__ decoded_block rows_of_warps[warps_each];
  pdl_launch_dependents();
  const std::uint32_t number = blockIdx.x * warps_each + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (number >= all.blocks) return pdl_wait();
  std::uint32_t which = all.count - 1;
  while (number < all.first[which]) --which;
  const decoded_matrix& m = all.of[which];
  const std::uint32_t inside = number - all.first[which], across = m.width / block_inputs;
  const std::byte* const block = m.blocks + static_cast<std::size_t>(inside) * m.block_bytes;
  decoded_block& rows = rows_of_warps[threadIdx.x / 32];
  switch (m.code) {
    case weight_element::int8: decode_block<Element, weight_element::int8>(m, block, rows); break;
    case weight_element::int4: decode_block<Element, weight_element::int4>(m, block, rows); break;
    case weight_element::fp8: decode_block<Element, weight_element::fp8>(m, block, rows); break;
    default: decode_block<Element, weight_element::nf4>(m, block, rows); break;
  }
  warp_barrier();
  pdl_wait();  // the kernel before this one may still read other rows from the same memory
  std::byte* const to = m.rows + (static_cast<std::size_t>(inside / across) * panel_outputs * m.width +
                                  static_cast<std::size_t>(inside % across) * block_inputs) *
                                     2;
#pragma unroll
  for (unsigned i = lane; i < panel_outputs * decoded_block::line / 16; i += 32) {
    const unsigned row = i / (decoded_block::line / 16), piece = i % (decoded_block::line / 16) * 16;
    *reinterpret_cast<uint4*>(to + static_cast<std::size_t>(row) * m.width * 2 + piece) =
        *reinterpret_cast<const uint4*>(rows.of + row * decoded_block::pitch + piece);
  }
}

/// Launched without PDL, so it begins when the rows are complete. Products request the first weights of theirs before
/// they wait for the kernel that precedes them, which therefore must not be the one that writes those weights.
__global__ void end_of_decoding_kernel() {}

}  // namespace

result<void> decode_rows(stream_handle in, element type, std::span<const decoding> matrices) {
  check(type != element::f32);
  check(matrices.size() <= gemms_max_of_turn);
  decoded_matrices all{};
  for (const auto& [m, to] : matrices) {
    const std::uint32_t width = padded(m.inputs);
    all.first[all.count] = all.blocks;
    all.of[all.count++] = {static_cast<const std::byte*>(m.data),
                           static_cast<std::byte*>(to),
                           block_bytes(m.format),
                           scale_groups_of_block(m.format) == 1 ? 0 : scale_bytes_of_group,
                           width,
                           m.format.element};
    all.blocks += padded(m.outputs) / panel_outputs * (width / block_inputs);
  }
  if (all.count == 0) return {};
  const launch_shape shape{"decode_rows", {(all.blocks + warps_each - 1) / warps_each}, {decode_threads}, 0, in, true};
  const auto done = type == element::f16 ? launch(shape, decode_rows_kernel<half>, all)
                                         : launch(shape, decode_rows_kernel<bf16>, all);
  if (!done) return done;
  return launch({"end of decoding", {1}, {32}, 0, in, false}, end_of_decoding_kernel);
}

}  // namespace skein::kernels::gpu
