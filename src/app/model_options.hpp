#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace skein::cli {

/// The model that a command uses.
struct model_options {
  std::filesystem::path path;
  std::vector<std::string> adapters;  ///< FILE or FILE:SCALE, merged in order
  std::string vocab;                  ///< file or "bytes"; empty: searched next to the model
  std::string device = "auto";
  std::string dtype = "auto";
  std::string weight_format;  ///< formats of single matrices, e.g. "ffn.*=nf4,head=int8"
  std::uint32_t threads = 0;  ///< 0: all CPUs that the process may use
  std::string state_dtype = "fp32";
  std::string invariance = "default";
  bool allow_nonfinite = false;  ///< load tensors that contain NaN or infinity
};

}  // namespace skein::cli
