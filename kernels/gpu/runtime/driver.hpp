#pragma once
#include <filesystem>

#include "kernels/gpu/runtime/runtime.hpp"

/// Whether this machine has a driver for the runtime. CUDA itself reports a missing driver as one whose version is
/// insufficient, HIP as a missing device.
namespace skein::kernels::gpu {

inline result<void> driver_present() {
#if defined(CUDART_VERSION)
  int version = 0;
  if (cudaDriverGetVersion(&version) == cudaSuccess && version == 0)
    return error{error_kind::unavailable, "GPU: there is no NVIDIA driver (libcuda.so.1)", ""};
#elif defined(__HIP_PLATFORM_AMD__)
  std::error_code unknown;
  if (!std::filesystem::exists("/dev/kfd", unknown))
    return error{error_kind::unavailable, "GPU: there is no AMD GPU driver (/dev/kfd)", ""};
#endif
  return {};
}

}  // namespace skein::kernels::gpu
