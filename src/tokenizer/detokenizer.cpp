#include "tokenizer/detokenizer.hpp"

#include "base/utf8.hpp"

namespace skein::tokenizer {

void utf8_assembler::push(std::string_view bytes, std::string& out) {
  held_ += bytes;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const utf8_head head = first_character(rest);
    if (head.what == utf8_head::kind::incomplete) break;
    if (head.is_character())
      out.append(rest.substr(0, head.bytes));
    else
      append_utf8(U'\uFFFD', out);
    rest.remove_prefix(head.bytes);
  }
  held_.erase(0, held_.size() - rest.size());
}

std::size_t utf8_assembler::finish() {
  const std::size_t dropped = held_.size();
  held_.clear();
  return dropped;
}

}  // namespace skein::tokenizer
