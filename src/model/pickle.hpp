#pragma once
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/file_bytes.hpp"

namespace skein::model {

/// A tensor as a pickled state dict describes it, not yet held against its storage.
struct pickled_tensor {
  std::string_view storage;  ///< key of the storage; lies in the file
  dtype type = dtype::f32;
  std::uint64_t storage_elements = 0;
  std::uint64_t offset = 0;          ///< of the first element, in elements
  std::vector<std::int64_t> shape;   ///< each at least 1
  std::vector<std::int64_t> stride;  ///< in elements, none negative
  std::uint64_t described_at = 0;    ///< byte of the call that makes it
};

struct pickled_entry {
  std::string_view name;  ///< lies in the file
  pickled_tensor tensor;
};

/// The tensors of the state dict that is pickled in [begin, end) of the file, in its order; the caller has checked that
/// the range lies inside and is no longer than max_header_bytes. Nothing is executed: a small stack machine knows the
/// opcodes and the four functions that torch.save writes for a state dict and refuses all others by name. Values that
/// are no tensors are skipped. The state dict may lie under `state_dict`, `model` or `module` of what was saved. Names
/// are not yet checked to be unique. Errors: bad_file with the byte.
[[nodiscard]] result<std::vector<pickled_entry>> read_state_dict(byte_span file, std::uint64_t begin,
                                                                 std::uint64_t end);

}  // namespace skein::model
