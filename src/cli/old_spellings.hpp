#pragma once
#include <string>
#include <vector>

#include "base/result.hpp"

namespace skein::cli {

struct modern_words {
  std::vector<std::string> arguments;
  std::vector<std::string> remarks;  ///< a line each: what an old flag asked for and does not get
};

/// Rewrites start flags of earlier RWKV servers that say things in another form; plain synonyms (--model-path) are in
/// config's table of keys. A value may also follow after '='.
///   --pp-devices [0,1]      -> --device cuda:0, with a remark: the first one serves
///   --debug [True|False]    -> --log-level debug
///   --wkv32                 -> --state-dtype fp32
///   --inference-engine E    -> --dtype: fp16; gemlite and cutlass are int8
///   --mrssmax N             -> --set limits.mixture_max=N
///   --chunk-load            -> nothing: a file is mapped and read in pieces anyway
///   --enable-dynamic-loading -> nothing
///   --webui, --rwkv-beta    -> nothing: the page is there, and the model's version is read from its file
/// Errors: invalid_argument.
[[nodiscard]] result<modern_words> modern_arguments(const std::vector<std::string>& arguments);

}  // namespace skein::cli
