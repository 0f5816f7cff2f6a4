#pragma once
#include <string>
#include <string_view>

namespace skein::tokenizer {

/// Assembles the bytes of successive tokens into whole UTF-8 characters. Bytes that can still become a character are
/// held back; others are replaced by U+FFFD (one per maximal invalid part, as the Unicode standard recommends).
class utf8_assembler {
 public:
  /// Appends to `out` all complete characters of the held bytes plus `bytes`.
  void push(std::string_view bytes, std::string& out);
  /// Ends the text: drops an incomplete tail and returns its number of bytes.
  std::size_t finish();
  [[nodiscard]] std::size_t held() const { return held_.size(); }

 private:
  std::string held_;  // at most 3 bytes
};

}  // namespace skein::tokenizer
