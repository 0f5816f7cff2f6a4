// Where there are no tensor cores of sm_90a: on AMD, and in the emulator with warps of 64 lanes.
#include "kernels/gpu/matmul.hpp"

namespace skein::kernels::gpu {

result<matmul_functions> choose_matmul(int, element) { return plain_matmul(); }

}  // namespace skein::kernels::gpu
