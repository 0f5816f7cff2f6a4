#pragma once
#include "protocol/json/json.hpp"
#include "protocol/json/json_writer.hpp"

namespace skein::protocol {

/// Writes a parsed value as compact JSON. Its depth is limited by json_limits::depth_max.
void copy_json(json_writer& out, json_value value);

}  // namespace skein::protocol
