#pragma once
#include "kernels/gpu/gemm/matmul.hpp"

namespace skein::kernels::gpu {

/// Has the contract of matmul(), on the tensor cores of sm_90a, for matrices of fp16 and bf16, and for those of fp8
/// that round their inputs, whose `rounded` the caller has filled (round_rows.hpp). Its bits differ: one instruction
/// adds 16 products at once, and instructions follow each other in ascending order of inputs. Rows from *row_count up
/// to `rows_room` may be read and written, so every buffer has space for them; they do not affect other rows.
[[nodiscard]] result<void> matmul_hopper(stream_handle in, element type, std::span<const gemm> gemms,
                                         const std::uint32_t* row_count, std::uint32_t rows_room);

/// Whether sm_90a is among the targets of the build.
[[nodiscard]] bool hopper_is_built();

/// As matmul_functions::splits: whether the launch takes less time with tiles for each segment, and with the traffic of
/// their partial sums, than with blocks that sum all segments.
[[nodiscard]] bool hopper_splits(std::span<const gemm> gemms, std::uint32_t rows_room);

/// Whether pairs of blocks share the tiles of that launch, half of the segments each. They do if one block per tile
/// would leave SMs idle or require narrow tiles, and if exchanging the sums takes less time than that.
[[nodiscard]] bool hopper_pairs(std::span<const gemm> gemms, std::uint32_t rows_room, std::uint32_t sm_count);

/// Low-rank pairs and other GEMMs of more than 64 rows, in three launches that run at the same time: the first GEMMs of
/// the pairs on a few SMs, the others on the other SMs, and the second GEMMs, which wait for the first ones and run
/// where an SM has nothing else to do. The bits are those of two launches one after another.
struct products_beside {
  products_by_turn products;
  std::uint32_t first_columns = 0;  ///< rows of a tile of the first launch
  std::uint32_t first_blocks = 0;   ///< of that launch, with an SM for each; 0: there can't be three launches

  products_beside(std::span<const gemm> gemms, std::uint32_t rows, std::uint32_t sm_count);
  /// Whether there can be three launches, and the `tiles` tiles of the one in between take as many turns on its SMs as
  /// on all.
  [[nodiscard]] bool is_worth_it(std::uint32_t tiles, std::uint32_t sm_count) const;
};
[[nodiscard]] result<void> multiply_first(stream_handle in, element type, const products_beside& all,
                                          std::uint32_t rows);
[[nodiscard]] result<void> multiply_second(stream_handle in, element type, const products_beside& all,
                                           std::uint32_t rows);
/// others(products): launches the ones in between.
template <typename Others>
[[nodiscard]] result<void> multiply_beside(stream_handle in, element type, const products_beside& all,
                                           std::uint32_t rows, Others others) {
  if (result<void> done = multiply_first(in, type, all, rows); !done) return done;
  if (result<void> done = others(all.products.any); !done) return done;
  return multiply_second(in, type, all, rows);
}

}  // namespace skein::kernels::gpu
