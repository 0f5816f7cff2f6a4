#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/files/file_bytes.hpp"
#include "model/files/ggml_tensors.hpp"

namespace skein::model {

/// Whether the file begins like a GGUF file, the format of llama.cpp.
[[nodiscard]] bool looks_like_gguf(byte_span file);

/// The content of a GGUF file of version 2 or 3: typed values by key, and tensors that neither overlap nor leave gaps
/// beyond their alignment. Everything was checked against the bounds of the file; texts and data point into it.
class gguf_file {
 public:
  /// Errors: bad_file with the byte offset.
  [[nodiscard]] static result<gguf_file> read(byte_span file);

  [[nodiscard]] std::span<const stored_tensor> tensors() const { return tensors_; }

  /// Values of a key. nullopt (or nothing) if the key is missing or has a value of another type.
  [[nodiscard]] std::optional<std::string_view> text(std::string_view key) const;
  [[nodiscard]] std::optional<std::uint64_t> number(std::string_view key) const;  ///< any integer type, not negative
  [[nodiscard]] std::optional<double> real(std::string_view key) const;
  /// Elements of an array, if there are no more than `most`.
  [[nodiscard]] std::vector<std::string_view> texts(std::string_view key, std::size_t most) const;
  [[nodiscard]] std::vector<std::uint64_t> numbers(std::string_view key, std::size_t most) const;
  /// Where the value of a key begins, for messages; 0 if it is missing.
  [[nodiscard]] std::uint64_t position(std::string_view key) const;

  enum class kind : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

 private:
  friend class gguf_reader;
  struct value {
    std::string key;
    kind type;  ///< of an array: of its elements
    bool is_array;
    std::uint64_t count;  ///< elements of an array, else 1
    std::uint64_t at;     ///< of the first element in the file
  };
  [[nodiscard]] const value* find(std::string_view key) const;
  [[nodiscard]] std::optional<std::uint64_t> integer_at(kind type, std::uint64_t at) const;

  byte_span file_;
  std::vector<value> values_;  ///< in order of key
  std::vector<stored_tensor> tensors_;
};

}  // namespace skein::model
