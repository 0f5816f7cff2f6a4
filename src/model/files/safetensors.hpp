#pragma once
#include <vector>

#include "base/result.hpp"
#include "model/files/file_bytes.hpp"
#include "model/files/safetensors_header.hpp"

namespace skein::model {

/// The tensors of a `.safetensors` file in header order: 8 bytes of header length, a JSON header, raw data. As the
/// format requires, the tensors cover the data exactly, without overlap or gap. A tensor may start at any alignment.
/// Names may still be duplicated. Errors: bad_file with the byte offset.
/// `metadata`, if given, receives the texts of the header.
[[nodiscard]] result<std::vector<found_tensor>> read_safetensors(byte_span file, file_metadata* metadata = nullptr);

}  // namespace skein::model
