#pragma once
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "protocol/requests/generation_request.hpp"

/// Bodies of /v1/server/stop, /pause and /resume.
namespace skein::protocol {

/// The id in {"request_id"?: id} (or "session_id"); empty if the body has none or is empty. Errors: as read_request.
[[nodiscard]] result<std::string> parse_control(std::string_view body, const request_limits& limits);

/// Applies max_tokens, chunk_size and the sampling fields of a /resume to the resumed request; absent fields change
/// nothing. Errors: as read_request.
[[nodiscard]] result<void> read_resume(std::string_view body, const request_limits& limits,
                                       generation_request& request);

}  // namespace skein::protocol
