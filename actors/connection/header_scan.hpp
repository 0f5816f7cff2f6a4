#pragma once
#include <cstddef>
#include <string_view>

#include "actors/connection/refusal.hpp"

namespace skein::connection {

/// Watches the raw bytes of a header while they arrive and finds its end. Refuses at the first byte that shows it: bare
/// CR or LF, control characters (a TLS hello among them), folded lines, and headers above the limit. What Beast's
/// parser sees is therefore whole, and of a form on which no two parsers disagree.
class header_scan {
 public:
  explicit header_scan(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  /// `bytes` is everything from the first byte of the request line on, longer on every call. Answers the size of the
  /// header with its empty line, or 0 while that has not come.
  [[nodiscard]] accepted<std::size_t> look(std::string_view bytes);

 private:
  std::size_t bytes_max_;
  std::size_t next_ = 0;  ///< first byte not looked at
  std::size_t line_ = 0;  ///< first byte of the current line
};

}  // namespace skein::connection
