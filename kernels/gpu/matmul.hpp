#pragma once
#include <span>

#include "kernels/gpu/batch.hpp"
#include "kernels/gpu/elements.hpp"
#include "kernels/gpu/runtime/runtime.hpp"

namespace skein::kernels::gpu {

/// What becomes of a product's sum.
enum class finish : std::uint8_t {
  store,         ///< out = sum
  sigmoid,       ///< out = 1 / (1 + exp(-sum))
  tanh,          ///< out = tanh(sum)
  relu_squared,  ///< out = max(sum, 0)^2, in fp32, then rounded
  add_f32,       ///< out += sum; out is fp32
  store_f32,     ///< out = sum; out is fp32
  store_f16,     ///< out = sum; out is fp16
  store_parts,   ///< out[p] = the sum of segment p, not added up; out is fp32
};

/// A launch may hold products that read what others of it write. In its list the first ones come first and the second
/// ones last.
enum class turn : std::uint8_t {
  any,
  first,   ///< read by the second ones; not stored in parts
  second,  ///< all of them have the same number of outputs, and no segments
};

/// Both sides of a matrix in memory are multiples of this, filled up with zeros; so are the rows of its input.
inline constexpr std::uint32_t matrix_tile = 64;
[[nodiscard]] constexpr std::uint32_t padded(std::uint32_t size) {
  return (size + matrix_tile - 1) / matrix_tile * matrix_tile;
}

/// out[t, o] = finish(sum over i of matrix[o, i] * in[t, i])
/// The inputs are cut into `segments` equal pieces of whole tiles (the last may be shorter). Each has a sum of its own,
/// in which i ascends, and the segments' sums are added in order. So few rows can be spread over more blocks, and who
/// reads a part of the sums each (store_parts, see product_rows) gets the bits of the whole.
/// matrix : [padded(outputs), padded(inputs)] row-major;  in : [rows, in_stride];  both of the launch's element type
/// out    : [rows, out_stride], of that type, fp32 or fp16 as `how` says; only the first `outputs` of a row are written
///          store_parts: [segments, part_stride] floats, each segment as rows
struct product {
  const void* matrix = nullptr;
  const void* in = nullptr;
  void* out = nullptr;
  std::uint32_t outputs = 0, inputs = 0, in_stride = 0, out_stride = 0;
  finish how = finish::store;
  std::uint32_t segments = 1;
  std::size_t part_stride = 0;
  /// Of the product at the front of a launch, or of the second ones, should those get a launch of their own: the next
  /// kernel may begin while the kernels before this launch still run, as it reads nothing that they write before it
  /// waits for this one.
  bool next_may_begin = false;
  turn when = turn::any;
  /// Of the second ones, the same for all: two numbers on the device, 0 between launches, to count what is done.
  std::uint32_t* done = nullptr;
};

/// Tiles of inputs in a segment.
[[nodiscard]] constexpr std::uint32_t segment_tiles(const product& p) {
  return (padded(p.inputs) / matrix_tile + p.segments - 1) / p.segments;
}
/// For a matrix whose launch has so many tiles of 64 outputs in all: up to four, as long as they all find room on a
/// large card at once, and none of them empty.
[[nodiscard]] constexpr std::uint32_t segments_of(std::uint32_t inputs, std::uint32_t output_tiles) {
  const std::uint32_t tiles = padded(inputs) / matrix_tile;
  const std::uint32_t wanted = output_tiles > 132 ? 1 : output_tiles > 66 ? 2 : 4;
  const std::uint32_t each = (tiles + wanted - 1) / wanted;
  return (tiles + each - 1) / each;
}

inline constexpr std::size_t products_max = 11;         // of a launch
inline constexpr std::size_t products_max_of_turn = 8;  // of its second ones, and of the others

/// How many products of a launch come before the second ones.
[[nodiscard]] constexpr std::size_t before_second(std::span<const product> products) {
  std::size_t count = 0;
  while (count < products.size() && products[count].when != turn::second) ++count;
  return count;
}
/// Whether a launch holds products that wait for others of it.
[[nodiscard]] constexpr bool has_turns(std::span<const product> products) {
  const std::size_t before = before_second(products);
  return before > 0 && before < products.size();
}
/// Those of a launch that wait for no others of it.
[[nodiscard]] constexpr std::span<const product> independent(std::span<const product> products) {
  return has_turns(products) ? products.first(before_second(products)) : products;
}
/// Whether a list of products is what `turn` says.
[[nodiscard]] bool is_in_turn(std::span<const product> products);
/// run(products) for those before the second ones, then for those.
template <typename Run>
[[nodiscard]] result<void> in_two_launches(std::span<const product> products, Run run) {
  const std::size_t before = before_second(products);
  if (result<void> done = run(products.first(before)); !done) return done;
  return run(products.subspan(before));
}

/// Up to eight products over the same rows in one launch, and as many second ones, eleven in all: *row_count rows, a
/// device address; `rows_room` is what blocks are launched for. The order of a sum is the same for any number of rows:
/// no bit of a row depends on the rows beside it.
[[nodiscard]] result<void> matmul(stream_handle in, element type, std::span<const product> products,
                                  const std::uint32_t* row_count, std::uint32_t rows_room);

/// Up to so many rows a product of several segments may have to be stored in parts.
inline constexpr std::uint32_t split_rows_max = 512;

/// The products of a device: the plain kernel or a faster one with the same contract (but its own bits).
struct matmul_functions {
  const char* name;
  result<void> (*run)(stream_handle in, element type, std::span<const product> products, const std::uint32_t* row_count,
                      std::uint32_t rows_room);
  /// Whether the products of several segments in that launch are stored in parts (finish::store_parts) for so many
  /// rows. Its second ones do not count.
  bool (*splits)(std::span<const product> products, std::uint32_t rows_room);
};
/// The plain ones split for up to eight rows, so that tests meet both.
[[nodiscard]] matmul_functions plain_matmul();
/// The fastest for that device and type.
[[nodiscard]] result<matmul_functions> choose_matmul(int device, element type);

}  // namespace skein::kernels::gpu
