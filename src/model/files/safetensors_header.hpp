#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "model/files/file_bytes.hpp"

namespace skein::model {

/// The names of element types in headers.
[[nodiscard]] std::string_view safetensors_name(dtype type);
[[nodiscard]] std::optional<dtype> safetensors_type(std::string_view name);

/// A tensor as described by a safetensors header, not yet checked against the file.
struct safetensors_entry {
  std::string name;
  std::string type;  ///< as written: "F32", "BF16", ...
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0, end = 0;  ///< bytes from the start of the data
  std::uint64_t described_at = 0;    ///< offset of the entry in the file
};

/// Pairs of the header's `__metadata__`, in its order.
using file_metadata = std::vector<std::pair<std::string, std::string>>;

/// Parses the JSON header in [begin, end) of the file; the caller has checked that the range is inside. Accepts only
/// the format's own grammar, which has a fixed depth, so there is no recursion. `metadata`, if given, receives
/// `__metadata__`. Errors: bad_file with the byte offset.
[[nodiscard]] result<std::vector<safetensors_entry>> parse_safetensors_header(byte_span file, std::uint64_t begin,
                                                                              std::uint64_t end,
                                                                              file_metadata* metadata = nullptr);

}  // namespace skein::model
