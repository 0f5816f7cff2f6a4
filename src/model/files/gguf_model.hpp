#pragma once
#include "base/result.hpp"
#include "model/files/found_model.hpp"

namespace skein::model {

/// Reads a GGUF file of llama.cpp: tensors with its names (see take_tensors), facts and vocabulary.
/// Errors: bad_file with the byte offset; unsupported for an architecture, or a kind of file, that is not read.
[[nodiscard]] result<void> read_gguf(byte_span file, found_model& found);

}  // namespace skein::model
