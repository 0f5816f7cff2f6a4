#pragma once
#include "model/files/found_model.hpp"

namespace skein::model {

/// Removes the prefix that torch wrappers and trainers add to all names, `module.`, `_orig_mod.`, ..., and those that
/// conversions for Hugging Face put before original names, `rwkv7.` and `model.`, which become the form.
void strip_prefix(found_model& found);

}  // namespace skein::model
