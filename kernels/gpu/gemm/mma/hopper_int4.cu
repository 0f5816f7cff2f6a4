#include "kernels/gpu/gemm/mma/hopper.cuh"

namespace skein::kernels::gpu::mma {

template result<void> launch_hopper<weight_element::int4>(std::uint32_t, const tile_launch&);

}  // namespace skein::kernels::gpu::mma
