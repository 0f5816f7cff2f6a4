#pragma once
#include "base/check.hpp"
#include "kernels/gpu/elements.hpp"
#include "kernels/gpu/matmul.hpp"

namespace skein::kernels::gpu {

/// The driver's function that makes a map; the driver is not linked.
inline auto tensor_map_encoder() {
  using encode_function = decltype(&cuTensorMapEncodeTiled);
  static const auto encode = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult how;
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &how) ==
                  cudaSuccess &&
              found,
          "a driver without tensor maps");
    return reinterpret_cast<encode_function>(found);
  }();
  return encode;
}

/// Describes a matrix to the copy engine: rows of `width` elements (whole tiles of 64), as tiles side by side. A box is
/// `box_tiles` tiles of `box_rows` rows each, one after another, in the pattern of tile_descriptor.
inline CUtensorMap describe_tiles(element type, const void* data, std::uint32_t width, std::size_t stride,
                                  std::uint32_t rows, std::uint32_t box_rows, std::uint32_t box_tiles) {
  CUtensorMap map;
  const cuuint64_t sizes[] = {matrix_tile, rows, width / matrix_tile}, strides[] = {stride * 2, matrix_tile * 2};
  const cuuint32_t box[] = {matrix_tile, box_rows, box_tiles}, steps[] = {1, 1, 1};
  const auto done = tensor_map_encoder()(
      &map, type == element::f16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3,
      const_cast<void*>(data), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  check(done == CUDA_SUCCESS, "a tensor map that the driver refuses");
  return map;
}

}  // namespace skein::kernels::gpu
