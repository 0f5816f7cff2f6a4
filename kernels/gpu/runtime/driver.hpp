#pragma once
#include "kernels/gpu/runtime/runtime.hpp"

/// Whether this machine has a driver for the runtime. CUDA itself reports a missing driver as one whose version is
/// insufficient.
namespace skein::kernels::gpu {

inline result<void> driver_present() {
#if defined(CUDART_VERSION)
  int version = 0;
  if (cudaDriverGetVersion(&version) == cudaSuccess && version == 0)
    return error{error_kind::unavailable, "GPU: there is no NVIDIA driver (libcuda.so.1)", ""};
#endif
  return {};
}

}  // namespace skein::kernels::gpu
