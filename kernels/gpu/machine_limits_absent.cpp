// For runtimes without a measurement of limits: AMD's, and the emulator, which has none.
#include "kernels/gpu/machine_limits.hpp"
#include "kernels/gpu/runtime/runtime.hpp"

namespace skein::kernels::gpu {

result<machine_limits> measure_limits(int) {
  return error{error_kind::unsupported, std::string("the limits of the runtime ") + runtime_name + " are not measured",
               ""};
}

}  // namespace skein::kernels::gpu
