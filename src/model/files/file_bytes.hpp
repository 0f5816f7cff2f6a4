#pragma once
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/tensor.hpp"

/// Shared by the readers of checkpoint formats: bounds-checked access to bytes, and errors that name a position. All
/// positions are byte offsets from the start of the file.
namespace skein::model {

static_assert(std::endian::native == std::endian::little, "checkpoints are little-endian and used in place");

using byte_span = std::span<const std::byte>;

/// Whether [offset, offset + bytes) lies inside [0, total). Never overflows.
[[nodiscard]] constexpr bool fits(std::uint64_t offset, std::uint64_t bytes, std::uint64_t total) {
  return offset <= total && bytes <= total - offset;
}

/// The number at `offset`, at any alignment; the caller has checked the bounds.
template <typename T>
[[nodiscard]] T load(byte_span file, std::uint64_t offset) {
  T value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

/// The bytes as text; the caller has checked the bounds.
[[nodiscard]] inline std::string_view text_at(byte_span file, std::uint64_t offset, std::uint64_t bytes) {
  return {reinterpret_cast<const char*>(file.data()) + offset, static_cast<std::size_t>(bytes)};
}

/// A tensor found by a format reader; `described_at` is the offset of its description in the file, `file` the index of
/// that file among those of the model.
struct found_tensor {
  std::string name;
  tensor_view view;
  std::uint64_t described_at = 0;
  std::uint32_t file = 0;
  std::string digest = {};  ///< of the tensor that this one was made from, as tensor_digest(); empty: its own
  std::string_view quantised_as = {};  ///< the ggml type in which the file has it; empty: it is not quantised there
};

/// bad_file: "at byte <offset>: <what>".
[[nodiscard]] error damaged(std::uint64_t offset, std::string_view what);

/// Text from a file, quoted for an error message: control and non-ASCII bytes as \xNN, long text truncated.
[[nodiscard]] std::string printable(std::string_view text);

/// Appends the line of a token to the text of a vocabulary file.
void append_vocabulary_line(std::size_t id, std::string_view bytes, std::string& out);

[[nodiscard]] bool valid_utf8(std::string_view text);

}  // namespace skein::model
