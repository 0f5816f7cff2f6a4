#include "kernels/gpu/gemm/hopper/matmul_hopper_fp8.hpp"

#include "kernels/gpu/gemm/hopper/matmul_hopper.cuh"

namespace skein::kernels::gpu {

result<void> launch_fp8_tiles(takes work, std::uint32_t columns, stream_handle in, element type,
                              std::span<const gemm> gemms, std::uint32_t rows, const launch_place& place) {
  return launch_hopper_tiles<mixed_operands>(work, columns, in, type, gemms, rows, place);
}

}  // namespace skein::kernels::gpu
