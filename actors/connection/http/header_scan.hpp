#pragma once
#include <cstddef>
#include <string_view>

#include "actors/connection/http/refusal.hpp"

namespace skein::connection {

/// Scans the raw bytes of a header as they arrive and finds its end. Refuses bare CR or LF, control characters
/// (including a TLS hello), folded lines, and headers above the limit, at the first offending byte. So Beast's parser
/// sees only whole headers in a form that all parsers read alike.
class header_scan {
 public:
  explicit header_scan(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  /// `bytes` is everything received since the first byte of the request line, longer on every call. Returns the size of
  /// the header with its empty line, or 0 if it is not complete.
  [[nodiscard]] accepted<std::size_t> look(std::string_view bytes);

 private:
  std::size_t bytes_max_;
  std::size_t next_ = 0;  ///< first byte not yet scanned
  std::size_t line_ = 0;  ///< first byte of the current line
};

}  // namespace skein::connection
