#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "protocol/dialect.hpp"
#include "protocol/generation_request.hpp"
#include "protocol/http_error.hpp"

namespace skein::protocol {

/// What has to be known of a JSON body before the rest of it can be read: who sends it, and who is to answer. Fields
/// that are absent or no strings are empty, and all are when the body is no JSON object.
struct body_head {
  std::optional<std::string> password;  ///< as clients of the older servers send it
  std::string model;
  std::string request_id;  ///< or session_id, where a paused request goes on
  /// How its refusal is written, where the path has several forms of bodies; also to who has not said who it is.
  std::optional<error_style> errors;
};
[[nodiscard]] body_head read_body_head(std::string_view body, const request_limits& limits,
                                       const dialect* spoken = nullptr);

}  // namespace skein::protocol
