#pragma once
#include <string>
#include <string_view>

#include "actors/connection/refusal.hpp"

namespace skein::connection {

/// The parts of a request target.
struct request_target {
  std::string path;       ///< decoded, begins with '/', valid UTF-8, without control characters, "." and ".."; or "*"
  std::string raw_path;   ///< the same as sent: a '/' that was escaped stays so
  std::string query;      ///< as sent, without '?'
  std::string authority;  ///< of an absolute-form target ("http://host/path"), else empty
};

/// Takes a target apart. Accepts origin-form and absolute-form, and "*" for OPTIONS.
[[nodiscard]] accepted<request_target> parse_target(std::string_view method, std::string_view target);

}  // namespace skein::connection
