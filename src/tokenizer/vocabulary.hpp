#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace skein::tokenizer {

/// A vocabulary in the World file format, or the byte vocabulary (`token = byte`, no end of text). Immutable after
/// loading, shared by all threads.
class vocabulary {
 public:
  /// World format: a line is `<id> <Python literal> <byte count>`; the file may begin with a UTF-8 byte order mark.
  /// Errors: missing_file, io, bad_file with the line number, or with a byte value that has no single-byte token.
  [[nodiscard]] static result<std::shared_ptr<const vocabulary>> load(const std::filesystem::path& file);
  /// The same from memory; `name` is the file name or path for errors.
  [[nodiscard]] static result<std::shared_ptr<const vocabulary>> parse_whole(std::string_view text,
                                                                             std::string_view name);
  /// The same without the check that every byte has a token.
  [[nodiscard]] static result<std::shared_ptr<const vocabulary>> parse(std::string_view text, std::string_view name);
  [[nodiscard]] static std::shared_ptr<const vocabulary> bytes();

  ~vocabulary();
  vocabulary(const vocabulary&) = delete;  // shared by pointer; the trie is large
  vocabulary& operator=(const vocabulary&) = delete;

  /// Appends the ids of `text` (any bytes) to `out`: greedy longest match, linear time, no recursion. Returns the
  /// number of ids. Errors: invalid_argument with the offset of a byte that no token begins with; `out` is then
  /// unchanged. Cannot occur if all 256 single bytes are tokens, as in the World vocabulary.
  [[nodiscard]] result<std::size_t> encode(std::string_view text, std::vector<token_id>& out) const;

  /// The bytes of a token; empty for the end of text and for all ids without text, including negative and too large
  /// ones.
  [[nodiscard]] std::string_view text(token_id id) const;
  [[nodiscard]] bool is_bytes() const;
  [[nodiscard]] std::uint32_t size() const;         ///< one above the highest id
  [[nodiscard]] std::size_t longest_token() const;  ///< bytes
  [[nodiscard]] const std::string& hash() const;    ///< XXH3-128 of ids and bytes, 32 hex digits
  [[nodiscard]] const std::string& name() const;    ///< file name, or "bytes"
  /// The end of text, or no_token if the vocabulary has none.
  [[nodiscard]] token_id end() const;

 private:
  struct impl;
  explicit vocabulary(std::unique_ptr<impl>);
  std::unique_ptr<impl> impl_;
};

}  // namespace skein::tokenizer
