#include "kernels/gpu/plugin.hpp"

#include "kernels/gpu/runtime/driver.hpp"
#include "kernels/gpu/runtime/runtime.hpp"

namespace skein::kernels::gpu {
namespace {

result<int> devices_of_driver() {
  if (const auto r = driver_present(); !r) return r.error();
  return device_count();
}

}  // namespace
}  // namespace skein::kernels::gpu

extern "C" __attribute__((visibility("default"))) const skein::kernels::gpu::plugin* skein_gpu_plugin() {
  using namespace skein::kernels::gpu;
  static constexpr plugin this_one = {.abi = plugin_abi,
                                      .build = SKEIN_BUILD_ID,
                                      .kind = runtime_name,
                                      .device_count = &devices_of_driver,
                                      .describe_device = &describe_device,
                                      .make_runner = &make_runner,
                                      .plan_runner = &plan_runner,
                                      .measure_limits = &measure_limits,
                                      .measure_tiles = &measure_tiles};
  return &this_one;
}
