#pragma once
#include <array>

#include "base/check.hpp"
#include "kernels/gpu/gemm/matmul.hpp"
#include "kernels/gpu/types/elements.hpp"
#if defined(SKEIN_GPU_EMULATOR)
#include "kernels/gpu/runtime/emulator/tma.hpp"
#endif

namespace skein::kernels::gpu {

/// Memory as TMA sees it: two or three dimensions, the innermost first. Sizes and strides in elements. A box, which is
/// the unit of one copy, has rows of at most 256 elements, and starts at a multiple of 128 bytes in shared memory.
struct map_shape {
  unsigned dimensions;
  std::array<std::uint32_t, 3> sizes;
  std::array<std::size_t, 2> strides;
  std::array<std::uint32_t, 3> box;
};

#if defined(SKEIN_GPU_EMULATOR)
/// `swizzles`: rows of a box have 128 bytes, and are stored in the swizzle pattern of tile_descriptor.
inline CUtensorMap encode_map(std::size_t element_bytes, const void* data, const map_shape& shape, bool swizzles) {
  CUtensorMap map;
  map.data = static_cast<std::byte*>(const_cast<void*>(data));
  map.element_bytes = static_cast<std::uint32_t>(element_bytes);
  map.swizzles = swizzles;
  map.strides[0] = map.element_bytes;
  for (unsigned d = 0; d < shape.dimensions; ++d) {
    map.sizes[d] = shape.sizes[d], map.box[d] = shape.box[d];
    check(map.box[d] >= 1 && map.box[d] <= 256 && map.sizes[d] >= 1);
    if (d == 0) continue;
    map.strides[d] = shape.strides[d - 1] * map.element_bytes;
    check(map.strides[d] % 16 == 0);
  }
  const std::size_t width = map.box[0] * element_bytes;
  check(swizzles ? width == 128 : width % 16 == 0);
  check(reinterpret_cast<std::uintptr_t>(data) % 16 == 0);
  return map;
}
inline CUtensorMap make_map(element type, const void* data, const map_shape& shape) {
  return encode_map(element_bytes(type), data, shape, true);
}
#else
/// The driver's function that encodes a tensor map; the driver is not linked.
inline auto tensor_map_encoder() {
  using encode_function = decltype(&cuTensorMapEncodeTiled);
  static const auto encode = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult how;
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &how) ==
                  cudaSuccess &&
              found,
          "the driver does not support tensor maps");
    return reinterpret_cast<encode_function>(found);
  }();
  return encode;
}

/// `swizzles`: rows of a box have 128 bytes, and are stored in the swizzle pattern of tile_descriptor.
inline CUtensorMap encode_map(CUtensorMapDataType type, std::size_t element_bytes, const void* data,
                              const map_shape& shape, bool swizzles) {
  const cuuint64_t sizes[] = {shape.sizes[0], shape.sizes[1], shape.sizes[2]};
  const cuuint64_t strides[] = {shape.strides[0] * element_bytes, shape.strides[1] * element_bytes};
  const cuuint32_t steps[] = {1, 1, 1};
  CUtensorMap map;
  const auto done = tensor_map_encoder()(&map, type, shape.dimensions, const_cast<void*>(data), sizes, strides,
                                         shape.box.data(), steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                         swizzles ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
                                         CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  check(done == CUDA_SUCCESS, "the driver refused a tensor map");
  return map;
}
inline CUtensorMap make_map(element type, const void* data, const map_shape& shape) {
  const CUtensorMapDataType types[] = {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                                       CU_TENSOR_MAP_DATA_TYPE_BFLOAT16};
  return encode_map(types[static_cast<unsigned>(type)], element_bytes(type), data, shape, true);
}
#endif

/// Describes a matrix to TMA: rows of `width` elements (whole tiles of 64), as tiles side by side. A box is `box_tiles`
/// tiles of `box_rows` rows each, one after another.
inline CUtensorMap describe_tiles(element type, const void* data, std::uint32_t width, std::size_t stride,
                                  std::uint32_t rows, std::uint32_t box_rows, std::uint32_t box_tiles) {
  return make_map(
      type, data,
      {3, {matrix_tile, rows, width / matrix_tile}, {stride, matrix_tile}, {matrix_tile, box_rows, box_tiles}});
}

/// Describes a quantised matrix (types/coded_layout.hpp) of `panels` panels of `blocks` blocks each to TMA. A box is
/// `box_blocks` blocks of each of `box_panels` panels, one after another; those beyond the matrix are zero.
inline CUtensorMap describe_blocks(const void* data, std::uint32_t block_bytes, std::uint32_t blocks,
                                   std::uint32_t panels, std::uint32_t box_blocks, std::uint32_t box_panels) {
  constexpr std::size_t word = 8;  // so that 256 elements are more than a block
  const auto words = static_cast<std::uint32_t>(block_bytes / word);
  const map_shape shape = {
      3, {words, blocks, panels}, {words, std::size_t{blocks} * words}, {words, box_blocks, box_panels}};
#if defined(SKEIN_GPU_EMULATOR)
  return encode_map(word, data, shape, false);
#else
  return encode_map(CU_TENSOR_MAP_DATA_TYPE_INT64, word, data, shape, false);
#endif
}

}  // namespace skein::kernels::gpu
