// For AMD GPUs, and the emulator with warps of 64 lanes.
#include "kernels/gpu/gemm/amd/matmul_amd.hpp"

namespace skein::kernels::gpu {

result<matmul_functions> choose_matmul(int, element type, const weight_plan&) {
  if (type == element::f32) return plain_matmul();
  return matmul_functions{"matrix cores", matmul_amd, amd_splits};
}

result<bool> rounds_inputs_of_fp8(int, element) { return false; }

}  // namespace skein::kernels::gpu
