#pragma once
#include "base/result.hpp"
#include "model/files/found_model.hpp"

namespace skein::model {

/// Gives the tensors of any known form the names, shapes and orientation of the original `.pth`: renames, transposes as
/// strided views, slices of fused tensors as views. A form is recognised by its tensor names, never by a file name.
/// Tensors of an unknown form stay as they are. Errors: bad_file or unsupported, naming the tensor or the form.
[[nodiscard]] result<void> to_original(found_model& found);

}  // namespace skein::model
