#pragma once
#include <cstddef>
#include <cstdint>

namespace skein::kernels::gpu {

inline constexpr std::uint32_t gemm_parts_max = 4;

/// The output of a GEMM as its consumer reads it: rows of the element type (parts == 0), or `parts` fp32 partial sums,
/// part p at data + p * part_stride floats. The partial sums are added in that order and rounded to the element type,
/// so that both forms give the same bits. device/gemm_rows.cuh reads them.
struct gemm_rows {
  const void* data = nullptr;
  std::uint32_t stride = 0;     ///< elements or floats from one row to the next; a multiple of 4
  std::uint32_t parts = 0;      ///< up to gemm_parts_max
  std::size_t part_stride = 0;  ///< a multiple of 4
  bool adds_each = false;       ///< a consumer that adds them to something adds each by itself (matmul_functions)
};

}  // namespace skein::kernels::gpu
