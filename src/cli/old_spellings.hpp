#pragma once
#include <string>
#include <vector>

#include "base/result.hpp"

namespace skein::cli {

/// Rewrites start flags of earlier RWKV servers that say things in another form; plain synonyms (--model-path) are in
/// config's table of keys. Flags that have no meaning here (--chunk-load) are dropped.
///   --pp-devices [0,1]  ->  --device cuda:0+1       --debug True  ->  --log-level debug
/// Errors: invalid_argument.
[[nodiscard]] result<std::vector<std::string>> modern_arguments(std::vector<std::string> arguments);

}  // namespace skein::cli
