#pragma once
#include "kernels/gpu/gemm/mma/multiply.cuh"

/// Products of up to 64 rows with quantised weights. Each of the four warps of a block has a panel of 16 outputs, whose
/// blocks it loads straight to registers, several ahead of the one that it decodes and multiplies, so that no barrier
/// stands between a warp and its weights. Only the inputs of the batch go through shared memory, in chunks.
///
/// Floor: bytes of codes and scales / bandwidth. For a block of 16 outputs by 64 inputs a warp issues some 80 (int4) to
/// 140 (bf16 from int8) instructions, which four schedulers of an H100 issue in 0.7 to 0.5 of the time that the block
/// takes to arrive.
namespace skein::kernels::gpu::mma {

/// `t`: the tiling of the launch, of 64 outputs.
template <typename t, weight_element code_>
struct few_rows_tiling : tiling<64, t::columns, 4, 1, 2, takes::one> {
  static constexpr bool coded = true;
  static constexpr weight_element code = code_;
  /// Blocks that a warp requests ahead: their codes take 32 registers of a lane.
  static constexpr unsigned blocks_ahead = code == weight_element::int8 ? 4 : 8;
  /// Inputs of a chunk, in blocks.
  static constexpr unsigned chunk_blocks = t::columns == 8 ? 8 : t::columns <= 32 ? 4 : 2;
  static constexpr unsigned chunks = 3;
  static constexpr unsigned row_bytes_of_chunk = chunk_blocks * block_inputs * 2;
  static constexpr unsigned chunk_bytes = t::columns * row_bytes_of_chunk;
  static_assert(chunks * chunk_bytes <= t::shared_bytes && t::threads == 128 && t::outputs == 64);
};

/// A lane's part of a block.
template <weight_element code>
struct fetched_block {
  code_words<code> codes[block_inputs / step_inputs];
  scale_pair scales[2];
};

/// The inputs of a batch in shared memory, chunk by chunk.
template <typename t>
class input_chunks {
 public:
  __device__ input_chunks(const placed_gemms& all, const work_item& work)
      : from_(work.gemm->inputs + work.row * work.gemm->in_stride + work.first * block_inputs * 2),
        stride_(work.gemm->in_stride),
        rows_(all.rows - work.row),
        blocks_(work.count) {}

  /// Requests chunk `c`; every thread calls this for each chunk in order, also beyond the last one.
  __device__ void request(unsigned c) const {
    constexpr unsigned packets = t::row_bytes_of_chunk / 16, all = t::columns * packets;
    std::byte* const to = dynamic_shared<std::byte>() + c % t::chunks * t::chunk_bytes;
    const unsigned first = c * packets, end = blocks_ * (block_inputs * 2 / 16);
#pragma unroll
    for (unsigned i = 0; i < all / t::threads; ++i) {
      const unsigned at = i * t::threads + threadIdx.x, row = at / packets, packet = at % packets;
      if (first + packet < end)
        copy_packet<false>(to + place(row, packet), from_ + row * stride_ + (first + packet) * 16, row < rows_);
    }
    end_packets();
  }
  /// Waits for chunk `c`, when at most one later chunk has been requested. The chunk before it may be replaced then.
  __device__ const std::byte* await(unsigned c) const {
    await_packets<t::chunks - 2>();
    __syncthreads();
    return dynamic_shared<std::byte>() + c % t::chunks * t::chunk_bytes;
  }
  /// Where 16 bytes of a row are; eight rows that are loaded together have no bank conflicts.
  __device__ static unsigned place(unsigned row, unsigned packet) {
    return row * t::row_bytes_of_chunk + ((packet ^ (row % 8)) << 4);
  }

 private:
  const std::byte* from_;
  std::size_t stride_;
  std::uint32_t rows_, blocks_;
};

/// The inputs of 32 inputs of a batch, as operands.
template <typename t>
__device__ void load_inputs(const std::byte* chunk, unsigned lane, unsigned first_packet,
                            fragment_b (&to)[2][t::tiles_n]) {
  if constexpr (t::tiles_n == 1) {
    fragment_a both;
    load_fragments(chunk + input_chunks<t>::place(lane % 8, first_packet + lane / 8), both);
    to[0][0][0] = both[0], to[0][0][1] = both[1], to[1][0][0] = both[2], to[1][0][1] = both[3];
  } else {
#pragma unroll
    for (unsigned k = 0; k < 2; ++k)
#pragma unroll
      for (int j = 0; j < t::tiles_n; j += 2) {
        fragment_a both;
        const unsigned row = j * 8 + lane / 16 * 8 + lane % 8;
        load_fragments(chunk + input_chunks<t>::place(row, first_packet + k * 2 + lane / 8 % 2), both);
        to[k][j][0] = both[0], to[k][j][1] = both[1], to[k][j + 1][0] = both[2], to[k][j + 1][1] = both[3];
      }
  }
}

/// As multiply() of multiply.cuh, for a product that is no second one and whose segments have blocks of their own.
template <typename Element, typename t>
__device__ void multiply_few_rows(const placed_gemms& all, const work_item& work, tile_sums<t>& sums) {
  constexpr unsigned word_bytes = sizeof(code_words<t::code>), ahead = t::blocks_ahead;
  const placed_gemm& p = *work.gemm;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::byte* const panel =
      p.weights + (work.output / panel_outputs + warp) * p.weight_stride + work.first * p.block_bytes;
  const std::uint32_t count = work.count;
  // Without branches, so that the instructions of several blocks overlap: beyond the last block, that one again; of one
  // group, its scales twice.
  const std::byte* const own_codes = panel + lane * word_bytes;
  const std::byte* const own_scales = panel + code_bytes_of_block(t::code) + lane / 4 * 4;
  const auto fetch = [&](std::uint32_t which, fetched_block<t::code>& to) {
    const std::uint32_t at = min(which, count - 1) * p.block_bytes;
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) to.codes[k] = load_once<code_words<t::code>>(own_codes + at + k * 32 * word_bytes);
    to.scales[0] = load_once<scale_pair>(own_scales + at);
    to.scales[1] = load_once<scale_pair>(own_scales + at + p.scale_step);
  };
  const input_chunks<t> inputs(all, work);
  fetched_block<t::code> blocks[ahead];
#pragma unroll
  for (unsigned i = 0; i < ahead; ++i) fetch(i, blocks[i]);
  if (all.pdl) {
    if (all.pdl_early_launch) pdl_launch_dependents();
    pdl_wait();
  }
  for (unsigned c = 0; c + 1 < t::chunks; ++c) inputs.request(c);
  const std::byte* chunk = nullptr;
  const auto use = [&](std::uint32_t at, fetched_block<t::code>& block) {
#pragma unroll
    for (unsigned i = 0; i < 2; ++i) {
      fragment_b b[2][t::tiles_n];
      load_inputs<t>(chunk, lane, at % t::chunk_blocks * 8 + i * 4, b);
#pragma unroll
      for (unsigned k = 0; k < 2; ++k) {
        fragment_a a;
        decode<Element>(block.codes[2 * i + k], block.scales[i], a);
#pragma unroll
        for (int j = 0; j < t::tiles_n; ++j) multiply_fragments<Element>(sums[0][j], a, b[k][j]);
      }
    }
  };
  constexpr unsigned between_chunks = t::chunk_blocks < ahead ? t::chunk_blocks : ahead;
  const auto begin_chunk = [&](std::uint32_t at) {
    if (at % t::chunk_blocks != 0) return;
    chunk = inputs.await(at / t::chunk_blocks);
    inputs.request(at / t::chunk_blocks + t::chunks - 1);
  };
  std::uint32_t first = 0;
  for (; first + ahead <= count; first += ahead) {
#pragma unroll
    for (unsigned i = 0; i < ahead; ++i) {
      if (i % between_chunks == 0) begin_chunk(first + i);
      use(first + i, blocks[i]);
      fetch(first + i + ahead, blocks[i]);
    }
    if (first + 2 * ahead >= count) pdl_launch_dependents();
  }
#pragma unroll
  for (unsigned i = 0; i < ahead - 1; ++i) {
    if (first + i >= count) break;
    if (i % between_chunks == 0) begin_chunk(first + i);
    use(first + i, blocks[i]);
  }
  pdl_launch_dependents();
}

}  // namespace skein::kernels::gpu::mma
