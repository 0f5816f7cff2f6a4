#pragma once
#include <string>
#include <string_view>

#include "actors/connection/http/refusal.hpp"

namespace skein::connection {

/// The parts of a request target.
struct request_target {
  std::string path;       ///< decoded, begins with '/', valid UTF-8, without control characters, "." and ".."; or "*"
  std::string raw_path;   ///< the same as sent: an escaped '/' stays escaped
  std::string query;      ///< as sent, without '?'
  std::string authority;  ///< of an absolute-form target ("http://host/path"), else empty
};

/// Parses a request target. Accepts origin-form and absolute-form, and "*" for OPTIONS.
[[nodiscard]] accepted<request_target> parse_target(std::string_view method, std::string_view target);

}  // namespace skein::connection
