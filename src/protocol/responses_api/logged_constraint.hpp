#pragma once
#include <string>

#include "protocol/requests/generation_request.hpp"
#include "protocol/requests/object_reader.hpp"

/// The constraint of a stored response, for an answer that is continued.
namespace skein::protocol {

/// The constraint that the body itself names (read_constraint), as JSON; empty: none. That of `text.format` and of
/// tools is stored with them.
[[nodiscard]] std::string constraint_to_log(const object_reader& body);

/// Reads what constraint_to_log wrote from the member `constraint`, if there is one, which records of older versions do
/// not have. Reports other values to the object's fault.
void read_logged_constraint(const object_reader& response, generation_request& out);

}  // namespace skein::protocol
