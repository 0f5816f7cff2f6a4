#pragma once
#include "base/result.hpp"
#include "model/files/found_model.hpp"

namespace skein::model {

/// Whether the tensors are those of a `.st` file of web-rwkv (ai00): original names except for `time_first` and
/// `time_mix`, low-rank matrices transposed. Versions 5, 6 and 7 differ from the original. A file of version 7 whose
/// ranks all equal its width is taken for an original.
[[nodiscard]] bool is_web_rwkv(const found_model& found);

/// Errors: bad_file naming the tensor.
[[nodiscard]] result<void> from_web_rwkv(found_model& found);

}  // namespace skein::model
