#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "actors/connection/http/header_parser.hpp"
#include "actors/connection/http/header_scan.hpp"
#include "actors/connection/http/http.hpp"

namespace skein::connection {

/// Takes one header from a client's bytes as they arrive.
class header_reader {
 public:
  explicit header_reader(const connection_limits& limits)
      : bytes_max_(limits.header_bytes_max), fields_max_(limits.header_fields_max), scan_(bytes_max_) {}

  /// `in`: everything that was received and not consumed. Consumes empty lines before the header, and the header once
  /// it is whole; nullopt until then.
  [[nodiscard]] accepted<std::optional<raw_header>> take(std::string& in);
  /// Bytes of the header have arrived.
  [[nodiscard]] bool begun() const { return begun_; }

 private:
  const std::size_t bytes_max_;
  const std::uint32_t fields_max_;
  header_scan scan_;
  std::size_t skipped_ = 0;  ///< bytes of empty lines
  bool begun_ = false;
};

}  // namespace skein::connection
