#pragma once
#include <string>
#include <string_view>

namespace skein::tokenizer {

/// Turns the bytes of successive tokens into whole UTF-8 characters: bytes that could still become a character are held
/// back, bytes that cannot are replaced by U+FFFD (one per maximal invalid part, as the Unicode standard recommends).
class utf8_assembler {
 public:
  /// Appends to `out` all complete characters of what was held back plus `bytes`.
  void push(std::string_view bytes, std::string& out);
  /// The end of the text: an incomplete tail is dropped. Returns how many bytes that were.
  std::size_t finish();
  [[nodiscard]] std::size_t held() const { return held_.size(); }

 private:
  std::string held_;  // at most 3 bytes
};

}  // namespace skein::tokenizer
