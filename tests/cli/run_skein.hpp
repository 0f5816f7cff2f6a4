#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace skein::test {

struct outcome {
  int exit_code = -1;  ///< -1: killed by a signal
  std::string out, err;
};

/// Runs the built program to its end. It finds no GPU, whatever the machine has, unless `environment` names a
/// SKEIN_CUDA_LIBRARY.
[[nodiscard]] outcome run_skein(const std::vector<std::string>& arguments, const std::string& input = {},
                                const std::vector<std::pair<std::string, std::string>>& environment = {});

}  // namespace skein::test
