#pragma once
#include <cstddef>
#include <string>

#include "base/result.hpp"
#include "kernels/gpu/plugin.hpp"

namespace skein::cli {

/// The device for a model, chosen before the model is loaded.
struct device_choice {
  const kernels::gpu::plugin* gpu = nullptr;  ///< null: the CPU
  int index = 0;                              ///< of the GPU
  std::size_t free_bytes = 0;                 ///< of its memory
  std::string remark;                         ///< for the log: why "auto" uses no GPU
};

/// Parses --device: auto (the first GPU, else the CPU), cpu, cuda, cuda:N.
/// Errors: unavailable if the named GPU does not exist or if this version of Skein does not support the device.
[[nodiscard]] result<device_choice> choose_device(const std::string& wish);

}  // namespace skein::cli
