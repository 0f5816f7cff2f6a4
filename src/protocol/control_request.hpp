#pragma once
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "protocol/generation_request.hpp"

/// Bodies of /v1/server/stop, /pause and /resume.
namespace skein::protocol {

/// The id of {"request_id"?: id} (or "session_id"); empty when the body names none, or is empty. Errors as
/// read_request.
[[nodiscard]] result<std::string> parse_control(std::string_view body, const request_limits& limits);

/// Takes max_tokens, chunk_size and sampler fields of a /resume into the request that goes on; what the body does not
/// name stays as it is. Errors as read_request.
[[nodiscard]] result<void> read_resume(std::string_view body, const request_limits& limits,
                                       generation_request& request);

}  // namespace skein::protocol
