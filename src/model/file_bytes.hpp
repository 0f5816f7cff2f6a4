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

/// What the readers of checkpoint formats share: looking at bytes without leaving the file, and saying where they are
/// wrong. All positions are bytes from the start of the file.
namespace skein::model {

static_assert(std::endian::native == std::endian::little, "checkpoints are little-endian and used where they lie");

using byte_span = std::span<const std::byte>;

/// Whether [offset, offset + bytes) lies inside [0, total). Never overflows.
[[nodiscard]] constexpr bool fits(std::uint64_t offset, std::uint64_t bytes, std::uint64_t total) {
  return offset <= total && bytes <= total - offset;
}

/// The number at `offset`, at any alignment; the caller has checked that it lies inside.
template <typename T>
[[nodiscard]] T load(byte_span file, std::uint64_t offset) {
  T value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

/// The bytes as text; the caller has checked that they lie inside.
[[nodiscard]] inline std::string_view text_at(byte_span file, std::uint64_t offset, std::uint64_t bytes) {
  return {reinterpret_cast<const char*>(file.data()) + offset, static_cast<std::size_t>(bytes)};
}

/// A tensor that a format reader found; `described_at` is where the file says so.
struct found_tensor {
  std::string name;
  tensor_view view;
  std::uint64_t described_at = 0;
};

/// bad_file: "at byte <offset>: <what>".
[[nodiscard]] error damaged(std::uint64_t offset, std::string_view what);

/// Text from a file made fit for an error message: in quotes, control and non-ASCII bytes as \xNN, long text cut.
[[nodiscard]] std::string printable(std::string_view text);

[[nodiscard]] bool valid_utf8(std::string_view text);

}  // namespace skein::model
