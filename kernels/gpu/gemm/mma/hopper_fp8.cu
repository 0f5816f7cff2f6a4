#include "kernels/gpu/gemm/mma/hopper.cuh"

namespace skein::kernels::gpu::mma {

template result<void> launch_hopper<weight_element::fp8>(std::uint32_t, takes, const tile_launch&);

}  // namespace skein::kernels::gpu::mma
