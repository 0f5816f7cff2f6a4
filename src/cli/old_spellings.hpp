#pragma once
#include <string>
#include <vector>

#include "base/result.hpp"

namespace skein::cli {

struct modern_words {
  std::vector<std::string> arguments;
  std::vector<std::string> remarks;  ///< one line for each old flag that has no or another effect
};

/// Rewrites start flags of earlier RWKV servers whose form differs; plain synonyms (--model-path) are in config's table
/// of keys. A value may also follow '='.
///   --pp-devices [0,1]      -> --device cuda:0, with a remark: only the first device is used
///   --debug [True|False]    -> --log-level debug
///   --wkv32                 -> --state-dtype fp32
///   --inference-engine E    -> --dtype: fp16; gemlite and cutlass are int8
///   --mrssmax N             -> --set limits.mixture_max=N
///   --chunk-load            -> no effect: files are always mapped and read in pieces
///   --enable-dynamic-loading -> no effect
///   --webui, --rwkv-beta    -> no effect: the page is always served, and the model's version is read from its file
/// Errors: invalid_argument.
[[nodiscard]] result<modern_words> modern_arguments(const std::vector<std::string>& arguments);

}  // namespace skein::cli
