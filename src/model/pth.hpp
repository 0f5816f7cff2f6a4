#pragma once
#include <vector>

#include "base/result.hpp"
#include "model/file_bytes.hpp"

namespace skein::model {

/// Whether these are the first bytes of a zip archive, as torch.save has written since torch 1.6.
[[nodiscard]] bool looks_like_pth(byte_span file);
/// Whether these are the first bytes of what torch.save wrote before 1.6: a bare pickle, which is not read.
[[nodiscard]] bool looks_like_legacy_pth(byte_span file);

/// The tensors of a `.pth` file: a zip archive with `<folder>/data.pkl`, a pickled dict, and storages
/// `<folder>/data/<key>`. Tensors may share storages and have any stride that keeps inside theirs.
/// Names are not yet checked to be unique. Errors: bad_file with the byte.
[[nodiscard]] result<std::vector<found_tensor>> read_pth(byte_span file);

}  // namespace skein::model
