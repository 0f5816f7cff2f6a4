#pragma once
#include <filesystem>

#include "base/result.hpp"
#include "kernels/gpu/plugin.hpp"

namespace skein::engine {

/// libskein_cuda.so as it was found; stays loaded to the end of the process.
struct gpu_library {
  const kernels::gpu::plugin* plugin = nullptr;
  int devices = 0;  ///< at least 1
  std::filesystem::path path;
};

/// Opens the library and asks it for devices. It is looked for in the folder lib beside the program, then in
/// ../lib/skein; $SKEIN_CUDA_LIBRARY names a file to take instead. Without GPU, driver or library this is an ordinary
/// answer, not trouble: unavailable, with one sentence that says what is not there.
[[nodiscard]] result<gpu_library> open_gpu_library();

}  // namespace skein::engine
