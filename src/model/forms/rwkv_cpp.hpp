#pragma once
#include "base/result.hpp"
#include "model/files/found_model.hpp"

namespace skein::model {

/// The tensors of a file of rwkv.cpp (versions 4 to 7 of the model), given the shapes and orientation of the original
/// checkpoint. Decays of versions 4 and 5, and the bonus of 5.1, are stored after exp() and become new fp32 memory: the
/// logarithms, so that computing with them gives the stored numbers again up to rounding. All other changes are views.
/// Errors: bad_file naming the tensor, or sizes that contradict the header.
[[nodiscard]] result<void> from_rwkv_cpp(found_model& found);

}  // namespace skein::model
