#pragma once
#include <type_traits>

#include "kernels/gpu/gemm/mma/multiply.cuh"

/// Products of up to 64 rows with quantised weights, where ringed_rows.cuh is not used. Each of the four warps of a
/// block has a panel of 16 outputs, whose blocks it loads straight to registers, several ahead of the one that it
/// decodes and multiplies, so that no barrier stands between a warp and its weights. Only the inputs of the batch go
/// through shared memory, in chunks.
///
/// int8, fp8 and NF4 with up to 16 rows (is_turned): two warps share a panel, with eight outputs each. These are on the
/// narrow side of the instruction, and the rows of the batch on the other. A matrix of 16,384 outputs has only two
/// panels for each scheduler of an H100, and a warp alone issues an instruction in four cycles; so twice as many warps
/// take less time, although each loads the inputs. The sums are the same chains of products and have the same bits.
/// With int4, which has the fewest instructions, it takes longer.
///
/// Floor: bytes of codes and scales / bandwidth. For a block of 16 outputs by 64 inputs the warps issue 97 (int4),
/// about 130 (int8) or 197 (NF4) instructions. The four schedulers of an H100 could issue them in 0.3 to 0.6 of the
/// time in which the block arrives, but each instruction waits for the one before it.
namespace skein::kernels::gpu::mma {

/// Inputs of a chunk, in blocks of 64, and chunks in shared memory at once.
template <typename t>
inline constexpr unsigned blocks_of_chunk = t::columns == 8    ? 8
                                            : t::columns <= 32 ? 4
                                                               : 2;
inline constexpr unsigned chunks_at_once = 3;
template <typename t>
inline constexpr unsigned input_chunk_bytes = chunks_at_once* t::columns* blocks_of_chunk<t>* block_inputs * 2;

/// `t`: the tiling of the launch, of 64 outputs.
template <typename t, weight_element code_>
struct few_rows_tiling : tiling<64, t::columns, 4, 1, 2, takes::one> {
  static constexpr bool coded = true, turned = is_turned(code_, t::columns);
  static constexpr int outputs = turned ? turned_outputs : 64, tiles_n = turned ? 1 : t::columns / 8;
  static constexpr weight_element code = code_;
  /// Blocks that a warp requests ahead: their codes take up to 32 registers of a lane.
  static constexpr unsigned blocks_ahead = code_bits(code) == 8 && !turned ? 4 : 8;
  static constexpr unsigned chunk_blocks = blocks_of_chunk<t>, chunks = chunks_at_once;
  static constexpr unsigned row_bytes_of_chunk = chunk_blocks * block_inputs * 2;
  static constexpr unsigned chunk_bytes = t::columns * row_bytes_of_chunk;
  static_assert(chunks * chunk_bytes <= t::shared_bytes && t::threads == 128 && t::outputs == 64);
};

/// A lane's part of a block; `halves`: 1 if the warp has eight of its outputs.
template <weight_element code, unsigned halves>
struct fetched_block {
  code_words<code> codes[2][halves];  // of 32 inputs
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

/// Loads the inputs of 32 inputs (two steps) as operands.
template <typename t>
class input_operands {
 public:
  __device__ explicit input_operands(unsigned lane) {
    const unsigned row = t::turned || t::tiles_n == 1 ? lane % t::columns : lane / 16 * 8 + lane % 8;
    const unsigned packet = t::turned ? lane / 16 : t::tiles_n == 1 ? lane / 8 : lane / 8 % 2;
#pragma unroll
    for (unsigned i = 0; i < places; ++i) own_[i] = input_chunks<t>::place(row, i * (8 / places) + packet);
  }
  __device__ void begin(const std::byte* chunk) {
#pragma unroll
    for (unsigned i = 0; i < places; ++i) at_[i] = chunk + own_[i];
  }
  /// `block`: of the chunk; `two`: the first or the last two steps of the block. On the wide side of the instruction;
  /// with 8 rows, the upper ones are the lower ones again, for nothing.
  __device__ void load(unsigned block, unsigned two, fragment_a (&to)[2]) const {
#pragma unroll
    for (unsigned k = 0; k < 2; ++k) load_fragments(at_[2 * two + k] + block * block_inputs * 2, to[k]);
  }
  /// On its narrow side.
  __device__ void load(unsigned block, unsigned two, fragment_b (&to)[2][t::tiles_n]) const {
    if constexpr (t::tiles_n == 1) {
      fragment_a both;
      load_fragments(at_[two] + block * block_inputs * 2, both);
      to[0][0][0] = both[0], to[0][0][1] = both[1], to[1][0][0] = both[2], to[1][0][1] = both[3];
    } else {
#pragma unroll
      for (unsigned k = 0; k < 2; ++k)
#pragma unroll
        for (int j = 0; j < t::tiles_n; j += 2) {
          fragment_a both;
          load_fragments(at_[2 * two + k] + block * block_inputs * 2 + j * 8 * t::row_bytes_of_chunk, both);
          to[k][j][0] = both[0], to[k][j][1] = both[1], to[k][j + 1][0] = both[2], to[k][j + 1][1] = both[3];
        }
    }
  }

 private:
  static constexpr unsigned places = !t::turned && t::tiles_n == 1 ? 2 : 4;  // of operands of a block
  unsigned own_[places];
  const std::byte* at_[places];
};

/// The blocks of a warp's panel, fetched one after another.
template <typename t>
class panel_blocks {
 public:
  using fetched = fetched_block<t::code, t::turned ? 1 : 2>;

  __device__ panel_blocks(const work_item& work, unsigned lane, unsigned warp)
      : block_bytes_(work.gemm->block_bytes), scale_step_(work.gemm->scale_step) {
    const unsigned panel = work.output / panel_outputs + (t::turned ? warp / 2 : warp);
    const unsigned upper = t::turned ? warp % 2 : 0;
    const std::byte* const first =
        work.gemm->weights + panel * work.gemm->weight_stride + work.first * work.gemm->block_bytes;
    codes_ = first + (upper * 32 + lane) * 4, scales_ = first + code_bytes_of_block(t::code) + lane / 4 * 4;
  }
  __device__ void fetch(fetched& to) {
    constexpr unsigned halves = t::turned ? 1 : 2;
#pragma unroll
    for (unsigned two = 0; two < 2; ++two)
#pragma unroll
      for (unsigned h = 0; h < halves; ++h)
        to.codes[two][h] = load_words<t::code>(two, h, 0, [&](unsigned bytes) { return load_once(codes_ + bytes); });
    // Of one group, its scales twice.
    to.scales[0] = load_once(scales_), to.scales[1] = load_once(scales_ + scale_step_);
    codes_ += block_bytes_, scales_ += block_bytes_;
  }

 private:
  const std::byte *codes_, *scales_;
  std::uint32_t block_bytes_, scale_step_;
};

/// As multiply() of multiply.cuh, for a product whose segments have blocks of their own. Of placed_gemms it is no
/// second one.
template <typename Element, typename t, typename Gemms>
__device__ void multiply_few_rows(const Gemms& all, const work_item& work, tile_sums<t>& sums) {
  constexpr unsigned ahead = t::blocks_ahead;
  static_assert(ahead % t::chunk_blocks == 0);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::uint32_t count = work.count;
  panel_blocks<t> panel(work, lane, warp);
  typename panel_blocks<t>::fetched blocks[ahead];
#pragma unroll
  for (unsigned i = 0; i < ahead; ++i)
    if (i < count) panel.fetch(blocks[i]);
  if constexpr (!std::is_same_v<Gemms, placed_gemms>) {
    await_inputs(all, work);
  } else if (all.pdl) {
    if (all.pdl_early_launch) pdl_launch_dependents();
    pdl_wait();
  }
  const input_chunks<t> inputs(all, work);
  for (unsigned c = 0; c + 1 < t::chunks; ++c) inputs.request(c);
  const decoder<Element, t::code> decode(
      static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(work.gemm->weights) >> 60));
  input_operands<t> operands(lane);
  const auto begin_chunk = [&](unsigned c) {
    operands.begin(inputs.await(c));
    inputs.request(c + t::chunks - 1);
  };
  const auto use = [&](unsigned in_chunk, const typename panel_blocks<t>::fetched& block) {
#pragma unroll
    for (unsigned two = 0; two < 2; ++two) {
      const auto& codes = block.codes[two];
      const scale_pair scales = block.scales[two];
      if constexpr (t::turned) {
        fragment_a a[2];
        operands.load(in_chunk, two, a);
#pragma unroll
        for (unsigned k = 0; k < 2; ++k) {
          fragment_b b;
          decode(codes[0], k, one_scale(scales, warp % 2), b);
          multiply_fragments<Element>(sums[0][0], a[k], b);
        }
      } else {
        fragment_b b[2][t::tiles_n];
        operands.load(in_chunk, two, b);
#pragma unroll
        for (unsigned k = 0; k < 2; ++k) {
          fragment_a a;
          decode(codes, k, scales, a);
#pragma unroll
          for (int j = 0; j < t::tiles_n; ++j) multiply_fragments<Element>(sums[0][j], a, b[k][j]);
        }
      }
    }
  };
  // A branch after each block keeps the loads of the one that replaces it from sinking to the end of the loop, where
  // the next block is needed at once.
  const auto work_through = [&] {
    for (std::uint32_t first = 0;; first += ahead) {
      if (first + 2 * ahead >= count) pdl_launch_dependents();
#pragma unroll
      for (unsigned i = 0; i < ahead; ++i) {
        if (i % t::chunk_blocks == 0) begin_chunk((first + i) / t::chunk_blocks);
        use(i % t::chunk_blocks, blocks[i]);
        if (first + i + 1 == count) return;
        if (first + i + ahead < count) panel.fetch(blocks[i]);
      }
    }
  };
  work_through();
}

}  // namespace skein::kernels::gpu::mma
