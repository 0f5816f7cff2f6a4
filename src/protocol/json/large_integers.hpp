#pragma once
#include <string_view>

#include "protocol/json/json.hpp"

namespace skein::protocol {

/// Parses a text that a model wrote. Integers beyond 64 bits, which json_document refuses, become the nearest double,
/// as in clients that read JSON. Errors: those of json_document::parse.
[[nodiscard]] result<json_document> parse_with_large_integers(std::string_view text);

}  // namespace skein::protocol
