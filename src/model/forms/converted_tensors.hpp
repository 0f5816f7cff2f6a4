#pragma once
#include "base/result.hpp"
#include "model/files/found_model.hpp"

namespace skein::model {

/// Joins the tensors of a file that `skein convert` wrote in a quantised or rounded form, as its metadata says
/// (docs/weights.md): codes and scales become one tensor with the original name, and tensors that were changed get the
/// digest of the original, so that the model keeps its identity. Files without that metadata stay as they are.
/// Reads the scales of fp8, to refuse other ones than a power of two for each row.
/// Errors: bad_file naming the tensor; unsupported for files of a newer version.
[[nodiscard]] result<void> join_converted(found_model& found);

}  // namespace skein::model
