#pragma once
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/files/file_bytes.hpp"

namespace skein::model {

/// A tensor as described by a pickled state dict, not yet checked against its storage.
struct pickled_tensor {
  std::string_view storage;  ///< key of the storage; points into the file
  dtype type = dtype::f32;
  std::uint64_t storage_elements = 0;
  std::uint64_t offset = 0;          ///< of the first element, in elements
  std::vector<std::int64_t> shape;   ///< each at least 1
  std::vector<std::int64_t> stride;  ///< in elements, none negative
  std::uint64_t described_at = 0;    ///< offset of the call that creates it
};

struct pickled_entry {
  std::string_view name;  ///< points into the file
  pickled_tensor tensor;
};

/// The tensors of the state dict that is pickled in [begin, end) of the file, in its order; the caller has checked that
/// the range is inside the file and at most max_header_bytes long. Nothing is executed: a small stack machine knows the
/// opcodes and the four functions that torch.save writes for a state dict and rejects all others by name. Other values
/// are skipped. The state dict may be nested under `state_dict`, `model` or `module`. Names may still be duplicated.
/// Errors: bad_file with the byte offset.
[[nodiscard]] result<std::vector<pickled_entry>> read_state_dict(byte_span file, std::uint64_t begin,
                                                                 std::uint64_t end);

}  // namespace skein::model
