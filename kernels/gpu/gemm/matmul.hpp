#pragma once
#include <span>

#include "kernels/gpu/runtime/runtime.hpp"
#include "kernels/gpu/types/batch.hpp"
#include "kernels/gpu/types/device_matrix.hpp"
#include "kernels/gpu/types/elements.hpp"
#include "kernels/weights/weight_plan.hpp"

namespace skein::kernels::gpu {

/// The activation of a GEMM, in fp32.
enum class activation_function : std::uint8_t {
  none,          ///< sum
  sigmoid,       ///< 1 / (1 + exp(-sum))
  tanh,          ///< tanh(sum)
  relu_squared,  ///< max(sum, 0)^2
};

/// The type of a GEMM's output, and how results get there. Those that are fp32 come last.
enum class destination : std::uint8_t {
  elements,  ///< out = result, rounded to the launch's element type
  f16,       ///< out = result; out is fp16
  f32,       ///< out = result; out is fp32
  add_f32,   ///< out += sum; out is fp32; without activation
  parts,     ///< out[p] = partial sum of segment p (split-K); out is fp32; without activation
};
[[nodiscard]] constexpr bool is_f32(destination to) { return to >= destination::f32; }

/// The epilogue of a GEMM.
struct epilogue {
  activation_function function = activation_function::none;
  destination to = destination::elements;
  bool operator==(const epilogue&) const = default;
};
/// The element type of the output, in a launch of that type.
[[nodiscard]] constexpr element output_type(epilogue how, element type) {
  return is_f32(how.to) ? element::f32 : how.to == destination::f16 ? element::f16 : type;
}

/// A launch may contain products that read the outputs of others in it. Those that are read are first in its list,
/// their readers last.
enum class turn : std::uint8_t {
  any,
  first,   ///< read by the second ones; not stored as partial sums
  second,  ///< all have the same number of outputs, and one segment
};

/// Rows that were rounded to e4m3: row t is scales[t] * codes[t, ...]. Scales are powers of two, aligned to 8 bytes;
/// there is space for row_tile_max more than there are rows, because a tile reads those of all its rows.
struct rounded_rows {
  std::byte* codes = nullptr;  ///< [rows, depth of the matrix * 128]
  float* scales = nullptr;
};
inline constexpr std::uint32_t row_tile_max = 320;

/// out[t, o] = activation(sum over i of matrix[o, i] * in[t, i])
/// Split-K: the inputs are cut into `segments` equal ranges of whole tiles (the last may be shorter). Each has a
/// partial sum, in which i ascends, and the partial sums are added in order. So a GEMM of few rows can use more blocks,
/// and a consumer that adds the partial sums itself (destination::parts, see gemm_rows) gets the same bits.
/// matrix : quantised, or of the launch's element type
/// in     : [rows, in_stride] of the launch's element type
/// rounded: for a matrix that rounds its inputs, space for `in` in e4m3
/// decoded: space for a quantised matrix as rows of the element type, where it is decoded first; or null
/// out    : [rows, out_stride] of output_type(how, type); only the first `matrix.outputs` of a row are written
///          destination::parts: [segments, part_stride] floats, each segment laid out as rows
struct gemm {
  device_matrix matrix;
  const void* in = nullptr;
  void* out = nullptr;
  std::uint32_t in_stride = 0, out_stride = 0;
  epilogue how = {};
  std::uint32_t segments = 1;
  std::size_t part_stride = 0;
  /// PDL. Read from the first product of a launch, and from the first of the second ones if those get a launch of their
  /// own: the next kernel may start while the kernels before this launch still run, because it reads none of their
  /// outputs before it waits for this launch.
  bool pdl_early_launch = false;
  turn when = turn::any;
  /// Of second products, the same for all: two counters on the device, 0 before and after the launches of these
  /// products and of those they read; not after an error (device/done_count.cuh). No launch that may still run uses
  /// them, because blocks can look at them before their PDL wait.
  std::uint32_t* done = nullptr;
  rounded_rows rounded = {};
  void* decoded = nullptr;
};
[[nodiscard]] constexpr bool is_quantised(const gemm& p) { return p.matrix.format.quantised(); }
[[nodiscard]] constexpr bool rounds_inputs(const gemm& p) { return p.matrix.rounds_inputs(); }

/// Input tiles per segment.
[[nodiscard]] constexpr std::uint32_t segment_tiles(const gemm& p) {
  return (p.matrix.depth() + p.segments - 1) / p.segments;
}
/// The segments for a matrix of `tiles` input tiles whose launch has `output_tiles` tiles of 64 outputs in total: up to
/// four, as long as there are at most `blocks` blocks and no segment is empty.
[[nodiscard]] constexpr std::uint32_t segments_of(std::uint32_t tiles, std::uint32_t output_tiles,
                                                  std::uint32_t blocks) {
  const std::uint32_t wanted = 2 * output_tiles > blocks ? 1 : 4 * output_tiles > blocks ? 2 : 4;
  const std::uint32_t each = (tiles + wanted - 1) / wanted;
  return (tiles + each - 1) / each;
}

/// The same for a matrix whose launch also has `beside` blocks of products that are not cut: up to four.
[[nodiscard]] constexpr std::uint32_t segments_beside(std::uint32_t tiles, std::uint32_t output_tiles,
                                                      std::uint32_t beside, std::uint32_t blocks) {
  std::uint32_t wanted = 4;
  while (wanted > 1 && wanted * output_tiles + beside > blocks) --wanted;
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
/// The products of a launch by their turn.
struct products_by_turn {
  std::span<const gemm> first, any, second;
};
[[nodiscard]] constexpr products_by_turn by_turn(std::span<const gemm> gemms) {
  const std::size_t before = before_second(gemms);
  std::size_t count = 0;
  while (count < before && gemms[count].when == turn::first) ++count;
  return {gemms.first(count), gemms.subspan(count, before - count), gemms.subspan(before)};
}
/// Whether a list of products is ordered as `turn` requires.
[[nodiscard]] bool is_in_turn(std::span<const gemm> gemms);
/// Whether fp8 matrices of models on that device are stored as rows, for products of inputs that are rounded to e4m3:
/// where tensor cores multiply e4m3. Their weights can't be read by other kernels.
[[nodiscard]] result<bool> rounds_inputs_of_fp8(int device, element type);
/// Checks what all kernels require of a launch.
void check_gemms(element type, std::span<const gemm> gemms);
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
  /// Whether that launch stores its products of several segments as partial sums (destination::parts) at `rows_room`
  /// rows. Its second products do not count.
  bool (*splits)(std::span<const gemm> gemms, std::uint32_t rows_room);
  /// Whether destination::add_f32 adds the sum of each segment by itself, in order; otherwise it adds their sum.
  bool adds_each = false;
  /// The blocks of a launch of few rows that an SM runs at once, at the speed of the memory.
  double blocks_per_sm = 2;
};
/// The plain kernel stores partial sums for up to eight rows, so that tests cover both cases.
[[nodiscard]] matmul_functions plain_matmul();
/// The fastest kernel for that device and type that multiplies by matrices of all of these formats.
[[nodiscard]] result<matmul_functions> choose_matmul(int device, element type, const weight_plan& formats);

}  // namespace skein::kernels::gpu
