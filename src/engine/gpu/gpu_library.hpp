#pragma once
#include <filesystem>

#include "base/result.hpp"
#include "kernels/gpu/plugin.hpp"

namespace skein::engine {

enum class gpu_kind { cuda, hip };

/// A loaded libskein_cuda.so or libskein_hip.so; stays loaded until the process ends.
struct gpu_library {
  gpu_kind kind = gpu_kind::cuda;
  const kernels::gpu::plugin* plugin = nullptr;
  int devices = 0;  ///< at least 1
  std::filesystem::path path;
};

/// Loads a library and counts its devices. Searches the folder lib beside the program, then ../lib/skein;
/// $SKEIN_CUDA_LIBRARY and $SKEIN_HIP_LIBRARY name a file to use instead. A missing GPU, driver or library is a normal
/// result: unavailable, with one sentence that says what is missing.
[[nodiscard]] result<gpu_library> open_gpu_library(gpu_kind kind);

/// The first of the two that has a device. The error says why each library that is installed has none.
[[nodiscard]] result<gpu_library> open_any_gpu_library();

}  // namespace skein::engine
