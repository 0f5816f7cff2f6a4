#pragma once
#include <span>

#include "kernels/gpu/runtime/runtime.hpp"
#include "kernels/gpu/types/batch.hpp"
#include "kernels/gpu/types/elements.hpp"
#include "kernels/weights/weight_format.hpp"

namespace skein::kernels::gpu {

/// The epilogue of a GEMM.
enum class epilogue : std::uint8_t {
  store,         ///< out = sum
  sigmoid,       ///< out = 1 / (1 + exp(-sum))
  tanh,          ///< out = tanh(sum)
  relu_squared,  ///< out = max(sum, 0)^2, in fp32, then rounded
  add_f32,       ///< out += sum; out is fp32
  store_f32,     ///< out = sum; out is fp32
  store_f16,     ///< out = sum; out is fp16
  store_parts,   ///< out[p] = partial sum of segment p (split-K); out is fp32
};

/// A launch may contain products that read the outputs of others in it. Those that are read are first in its list,
/// their readers last.
enum class turn : std::uint8_t {
  any,
  first,   ///< read by the second ones; not stored as partial sums
  second,  ///< all have the same number of outputs, and one segment
};

/// Both dimensions of a matrix in memory are padded with zeros to multiples of this; so are the rows of its input.
inline constexpr std::uint32_t matrix_tile = 64;
[[nodiscard]] constexpr std::uint32_t padded(std::uint32_t size) {
  return (size + matrix_tile - 1) / matrix_tile * matrix_tile;
}

/// out[t, o] = finish(sum over i of matrix[o, i] * in[t, i])
/// Split-K: the inputs are cut into `segments` equal ranges of whole tiles (the last may be shorter). Each has a
/// partial sum, in which i ascends, and the partial sums are added in order. So a GEMM of few rows can use more blocks,
/// and a consumer that adds the partial sums itself (store_parts, see gemm_rows) gets the same bits.
/// matrix : [padded(outputs), padded(inputs)] row-major, or quantised and laid out as in types/coded_layout.hpp
/// in     : [rows, in_stride];  both of the launch's element type
/// out    : [rows, out_stride], of that type, fp32 or fp16 as `how` says; only the first `outputs` of a row are written
///          store_parts: [segments, part_stride] floats, each segment laid out as rows
struct gemm {
  const void* matrix = nullptr;
  const void* in = nullptr;
  void* out = nullptr;
  std::uint32_t outputs = 0, inputs = 0, in_stride = 0, out_stride = 0;
  epilogue how = epilogue::store;
  std::uint32_t segments = 1;
  std::size_t part_stride = 0;
  /// PDL. Read from the first product of a launch, and from the first of the second ones if those get a launch of their
  /// own: the next kernel may start while the kernels before this launch still run, because it reads none of their
  /// outputs before it waits for this launch.
  bool pdl_early_launch = false;
  turn when = turn::any;
  /// Of second products, the same for all: two counters on the device, 0 between launches (device/done_count.cuh).
  std::uint32_t* done = nullptr;
  weight_format format = {};  ///< of the matrix if it is quantised
};
[[nodiscard]] constexpr bool is_quantised(const gemm& p) { return p.format.quantised(); }

/// Input tiles per segment.
[[nodiscard]] constexpr std::uint32_t segment_tiles(const gemm& p) {
  return (padded(p.inputs) / matrix_tile + p.segments - 1) / p.segments;
}
/// The segments for a matrix whose launch has `output_tiles` tiles of 64 outputs in total: up to four, as long as there
/// are at most `blocks` blocks and no segment is empty.
[[nodiscard]] constexpr std::uint32_t segments_of(std::uint32_t inputs, std::uint32_t output_tiles,
                                                  std::uint32_t blocks) {
  const std::uint32_t tiles = padded(inputs) / matrix_tile;
  const std::uint32_t wanted = 2 * output_tiles > blocks ? 1 : 4 * output_tiles > blocks ? 2 : 4;
  const std::uint32_t each = (tiles + wanted - 1) / wanted;
  return (tiles + each - 1) / each;
}

inline constexpr std::size_t gemms_max = 11;         // per launch
inline constexpr std::size_t gemms_max_of_turn = 8;  // among its second products, and among the others

/// The number of products in a launch before its second ones.
[[nodiscard]] constexpr std::size_t before_second(std::span<const gemm> gemms) {
  std::size_t count = 0;
  while (count < gemms.size() && gemms[count].when != turn::second) ++count;
  return count;
}
/// Whether some products of a launch wait for others in it.
[[nodiscard]] constexpr bool has_turns(std::span<const gemm> gemms) {
  const std::size_t before = before_second(gemms);
  return before > 0 && before < gemms.size();
}
/// The products of a launch that do not wait for others in it.
[[nodiscard]] constexpr std::span<const gemm> independent(std::span<const gemm> gemms) {
  return has_turns(gemms) ? gemms.first(before_second(gemms)) : gemms;
}
/// Whether a list of products is ordered as `turn` requires.
[[nodiscard]] bool is_in_turn(std::span<const gemm> gemms);
/// run(products) for those before the second ones, then for the second ones.
template <typename Run>
[[nodiscard]] result<void> in_two_launches(std::span<const gemm> gemms, Run run) {
  const std::size_t before = before_second(gemms);
  if (result<void> done = run(gemms.first(before)); !done) return done;
  return run(gemms.subspan(before));
}

/// Runs up to eight products over the same rows in one launch, and as many second ones, eleven in total. *row_count, a
/// device address, is the number of rows; `rows_room` is the number that blocks are launched for. The order of a sum
/// does not depend on the number of rows, so the results are batch-invariant.
[[nodiscard]] result<void> matmul(stream_handle in, element type, std::span<const gemm> gemms,
                                  const std::uint32_t* row_count, std::uint32_t rows_room);

/// The most rows for which a product of several segments may be stored as partial sums.
inline constexpr std::uint32_t split_rows_max = 512;

/// The GEMM kernels of a device: the plain kernel or a faster one with the same contract (but other bits).
struct matmul_functions {
  const char* name;
  result<void> (*run)(stream_handle in, element type, std::span<const gemm> gemms, const std::uint32_t* row_count,
                      std::uint32_t rows_room);
  /// Whether that launch stores its products of several segments as partial sums (finish::store_parts) at `rows_room`
  /// rows. Its second products do not count.
  bool (*splits)(std::span<const gemm> gemms, std::uint32_t rows_room);
  /// Whether epilogue::add_f32 adds the sum of each segment by itself, in order; otherwise it adds their sum.
  bool adds_each = false;
  /// The blocks of a launch of few rows that an SM runs at once, at the speed of the memory.
  double blocks_per_sm = 2;
  /// Whether matrices may be quantised.
  bool takes_codes = false;
};
/// The plain kernel stores partial sums for up to eight rows, so that tests cover both cases.
[[nodiscard]] matmul_functions plain_matmul();
/// The fastest kernel for that device and type, for matrices of which some are quantised (`coded`) or none.
[[nodiscard]] result<matmul_functions> choose_matmul(int device, element type, bool coded = false);

}  // namespace skein::kernels::gpu
