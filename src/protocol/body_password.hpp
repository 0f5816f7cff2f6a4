#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "protocol/generation_request.hpp"

namespace skein::protocol {

/// The string field `password` of a JSON body, as clients of the older servers send it; nothing when the body is no
/// JSON object or has none. Read before anything else of the body, so that a stranger learns nothing from field errors.
[[nodiscard]] std::optional<std::string> body_password(std::string_view body, const request_limits& limits);

}  // namespace skein::protocol
