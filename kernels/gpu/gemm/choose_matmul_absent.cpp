// For targets without the tensor cores of NVIDIA GPUs: AMD, and the emulator with warps of 64 lanes.
#include "kernels/gpu/gemm/matmul.hpp"

namespace skein::kernels::gpu {

result<matmul_functions> choose_matmul(int, element, bool) { return plain_matmul(); }

}  // namespace skein::kernels::gpu
