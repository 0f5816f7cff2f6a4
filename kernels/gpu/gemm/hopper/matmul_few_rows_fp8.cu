#include "kernels/gpu/gemm/hopper/matmul_few_rows.cuh"
#include "kernels/gpu/gemm/hopper/matmul_hopper_fp8.hpp"

namespace skein::kernels::gpu {

result<void> matmul_few_rows_fp8(stream_handle in, element type, std::span<const gemm> gemms, std::uint32_t rows_room) {
  return launch_few_rows<mixed_operands>(in, type, gemms, rows_room);
}

}  // namespace skein::kernels::gpu
