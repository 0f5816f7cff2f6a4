#pragma once
#include <string>

#include "protocol/json/json.hpp"

namespace skein::protocol {

/// Appends a value with a line for each member and element, indented by two spaces a level.
void indent_json(std::string& out, json_value value);

}  // namespace skein::protocol
