#pragma once
#include <span>

#include "model/adapters/adapter_choice.hpp"
#include "model/files/found_model.hpp"

namespace skein::model {

/// Merges adapters, in order, into the tensors of a model that has the original names. Each changed tensor moves to
/// memory of its own with its element type: computed in fp64 and rounded once, with all cores; the bits do not depend
/// on their number. All other tensors stay as they are.
/// Errors: those of read_adapters; bad_file for a tensor that the model does not have or whose shape does not fit, and
/// for NaN and infinity, naming the adapter's tensor.
[[nodiscard]] result<void> merge_adapters(found_model& model, std::span<const adapter_choice> choices);

}  // namespace skein::model
