#pragma once
#include <cstddef>
#include <string>

#include "base/result.hpp"
#include "kernels/gpu/plugin.hpp"

namespace skein::cli {

/// Where a model shall run, as far as that is known before it is loaded.
struct device_choice {
  const kernels::gpu::plugin* gpu = nullptr;  ///< null: the CPU
  int index = 0;                              ///< of the GPU
  std::size_t free_bytes = 0;                 ///< of its memory
  std::string remark;                         ///< for the log, when "auto" found no GPU: why
};

/// From the text of --device: auto (the first GPU, else the CPU), cpu, cuda, cuda:N. Errors: unavailable when a GPU is
/// asked for by name and is not there, or for devices that this version does not have.
[[nodiscard]] result<device_choice> choose_device(const std::string& wish);

}  // namespace skein::cli
