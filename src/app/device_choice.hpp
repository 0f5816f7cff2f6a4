#pragma once
#include <cstddef>
#include <string>
#include <vector>

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

/// The devices of a list such as "cuda:0,cuda:1"; at least one.
[[nodiscard]] std::vector<std::string> split_devices(const std::string& list);

/// Parses one device: auto (the first GPU, else the CPU), cpu, cuda, cuda:N, hip, hip:N.
/// Errors: invalid_argument for a text that names no device; unavailable if the named GPU does not exist, and for
/// groups of GPUs ("cuda:0+1"), which this version does not support.
[[nodiscard]] result<device_choice> choose_device(const std::string& wish);

}  // namespace skein::cli
