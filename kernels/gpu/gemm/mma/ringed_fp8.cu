#include "kernels/gpu/gemm/mma/ringed_rows.cuh"

namespace skein::kernels::gpu::mma {

template result<void> launch_ringed<weight_element::fp8>(mma_shape, const tile_launch&);

}  // namespace skein::kernels::gpu::mma
