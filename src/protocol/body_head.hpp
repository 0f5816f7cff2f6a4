#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "protocol/generation_request.hpp"

namespace skein::protocol {

/// What has to be known of a JSON body before the rest of it can be read: who sends it, and who is to answer. Fields
/// that are absent or no strings are empty, and all are when the body is no JSON object.
struct body_head {
  std::optional<std::string> password;  ///< as clients of the older servers send it
  std::string model;
  std::string request_id;  ///< or session_id, where a paused request goes on
};
[[nodiscard]] body_head read_body_head(std::string_view body, const request_limits& limits);

}  // namespace skein::protocol
