#include "kernels/gpu/plugin.hpp"

#include "kernels/gpu/runtime/runtime.hpp"

extern "C" __attribute__((visibility("default"))) const skein::kernels::gpu::plugin* skein_gpu_plugin() {
  using namespace skein::kernels::gpu;
  static constexpr plugin this_one = {plugin_abi,    SKEIN_BUILD_ID,   runtime_name,
                                      &device_count, &describe_device, &make_gpu_rwkv7};
  return &this_one;
}
