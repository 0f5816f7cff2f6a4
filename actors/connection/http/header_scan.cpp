#include "actors/connection/http/header_scan.hpp"

namespace skein::connection {

accepted<std::size_t> header_scan::look(std::string_view bytes) {
  for (; next_ < bytes.size(); ++next_) {
    if (next_ >= bytes_max_)
      return line_ == 0 ? refusal{414, "the request line is too long"} : refusal{431, "the header is too large"};
    const char c = bytes[next_];
    const bool after_cr = next_ > 0 && bytes[next_ - 1] == '\r';
    if (after_cr != (c == '\n')) return refusal{400, "header lines must end with CR LF"};
    if (c == '\n') {
      if (next_ == line_ + 1) return ++next_;
      line_ = next_ + 1;
      continue;
    }
    if (next_ == line_ && (c == ' ' || c == '\t')) return refusal{400, "a header line begins with white space"};
    const auto code = static_cast<unsigned char>(c);
    if ((code < 0x20 && c != '\t' && c != '\r') || code == 0x7f)
      return refusal{400, "the header contains a control character"};
  }
  return std::size_t{0};
}

}  // namespace skein::connection
