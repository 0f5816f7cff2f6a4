#pragma once
#include "kernels/gpu/fused/launch.cuh"

/// The kernels for one kind of code.
namespace skein::kernels::gpu::mma {

template <weight_element code>
result<void> launch_led_coded(const led_launch& led) {
  return launch_led(led, [&]<typename t>() {
    return launch_led_tiles<t>(led, led_coded_kernel<half, t, code>, led_coded_kernel<bf16, t, code>);
  });
}

}  // namespace skein::kernels::gpu::mma
