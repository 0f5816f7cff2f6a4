#pragma once
#include "base/result.hpp"
#include "model/files/found_model.hpp"

namespace skein::model {

/// Whether the file begins like a model of rwkv.cpp.
[[nodiscard]] bool looks_like_rwkv_cpp(byte_span file);

/// Reads a model file of rwkv.cpp, version 100 or 101: tensors with the names of the original checkpoint, in the
/// shapes of rwkv.cpp. Version 100 with quantised tensors is refused: their blocks were different ones.
/// Errors: bad_file with the byte offset, unsupported.
[[nodiscard]] result<void> read_rwkv_cpp(byte_span file, found_model& found);

}  // namespace skein::model
