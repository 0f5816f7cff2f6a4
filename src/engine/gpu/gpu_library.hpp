#pragma once
#include <filesystem>

#include "base/result.hpp"
#include "kernels/gpu/plugin.hpp"

namespace skein::engine {

/// The loaded libskein_cuda.so; stays loaded until the process ends.
struct gpu_library {
  const kernels::gpu::plugin* plugin = nullptr;
  int devices = 0;  ///< at least 1
  std::filesystem::path path;
};

/// Loads the library and counts its devices. Searches the folder lib beside the program, then ../lib/skein;
/// $SKEIN_CUDA_LIBRARY names a file to use instead. A missing GPU, driver or library is a normal result: unavailable,
/// with one sentence that says what is missing.
[[nodiscard]] result<gpu_library> open_gpu_library();

}  // namespace skein::engine
