#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "actors/connection/http/http.hpp"
#include "actors/connection/http/refusal.hpp"

namespace skein::connection {

/// A request line and its fields as they were sent; field names in lower case, values without white space around them.
struct raw_header {
  std::string method;
  std::string target;
  unsigned version = 11;  ///< 10 or 11
  header_list fields;
};

/// Parses one whole header, from the request line to the empty line, as found by header_scan. Checks only the grammar;
/// request_gate checks the combination of fields.
[[nodiscard]] accepted<raw_header> parse_header(std::string_view block, std::uint32_t fields_max);

}  // namespace skein::connection
