#include "kernels/gpu/gemm/mma/coded.cuh"

namespace skein::kernels::gpu::mma {

template result<void> launch_coded<weight_element::int4>(mma_shape, const tile_launch&);

}  // namespace skein::kernels::gpu::mma
