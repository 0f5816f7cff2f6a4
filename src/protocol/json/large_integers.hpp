#pragma once
#include <string_view>

#include "protocol/json/json.hpp"

namespace skein::protocol {

/// Parses a text that a model wrote, with the limits of written_json. Two things that json_document refuses are
/// accepted, as in clients that read JSON: integers beyond 64 bits, which become the nearest double, and objects with
/// two members of one name. Errors: those of json_document::parse.
[[nodiscard]] result<json_document> parse_with_large_integers(std::string_view text);

}  // namespace skein::protocol
