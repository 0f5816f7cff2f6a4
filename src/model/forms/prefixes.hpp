#pragma once
#include <vector>

#include "model/files/file_bytes.hpp"

namespace skein::model {

/// Removes the prefix that torch wrappers and trainers add to all names: `module.`, `_orig_mod.`, `rwkv7.`, ...
void strip_prefix(std::vector<found_tensor>& tensors);

}  // namespace skein::model
