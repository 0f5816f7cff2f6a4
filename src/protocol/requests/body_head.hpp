#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "protocol/json/http_error.hpp"
#include "protocol/requests/dialect.hpp"
#include "protocol/requests/generation_request.hpp"

namespace skein::protocol {

/// Fields of a JSON body that are needed before the rest can be read: the credentials and the model. Fields that are
/// absent or not strings are empty; if the body is not a JSON object, all are.
struct body_head {
  std::optional<std::string> password;  ///< sent by clients of the older servers
  std::string model;
  std::string request_id;  ///< or session_id, to resume a paused request
  /// The style of errors, on paths with several forms of bodies; also used if authentication fails.
  std::optional<error_style> errors;
};
[[nodiscard]] body_head read_body_head(std::string_view body, const request_limits& limits,
                                       const dialect* spoken = nullptr);

}  // namespace skein::protocol
