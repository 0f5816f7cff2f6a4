#include "kernels/gpu/gemm/hopper/matmul_few_rows.hpp"

#include "kernels/gpu/gemm/hopper/matmul_few_rows.cuh"

namespace skein::kernels::gpu {

result<void> matmul_few_rows(stream_handle in, element type, std::span<const gemm> gemms, std::uint32_t rows_room) {
  return launch_few_rows<own_type>(in, type, gemms, rows_room);
}

}  // namespace skein::kernels::gpu
