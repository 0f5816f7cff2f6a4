#pragma once
#include <vector>

#include "base/result.hpp"
#include "model/files/file_bytes.hpp"

namespace skein::model {

/// Whether the file begins like a zip archive, the format of torch.save since torch 1.6.
[[nodiscard]] bool looks_like_pth(byte_span file);
/// Whether the file begins like the output of torch.save before 1.6: a bare pickle, which is not supported.
[[nodiscard]] bool looks_like_legacy_pth(byte_span file);

/// The tensors of a `.pth` file: a zip archive with `<folder>/data.pkl`, a pickled dict, and storages
/// `<folder>/data/<key>`. Tensors may share storages and have any stride that stays inside theirs. Names may still be
/// duplicated. Errors: bad_file with the byte offset.
[[nodiscard]] result<std::vector<found_tensor>> read_pth(byte_span file);

}  // namespace skein::model
