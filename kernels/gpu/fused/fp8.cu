#include "kernels/gpu/fused/coded.cuh"

namespace skein::kernels::gpu::mma {

template result<void> launch_led_coded<weight_element::fp8>(const led_launch&);

}  // namespace skein::kernels::gpu::mma
