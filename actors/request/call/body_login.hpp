#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "actors/request/shared/service_context.hpp"
#include "base/error.hpp"

namespace skein::request {

/// A refusal and its Retry-After.
struct login_refusal {
  error why;
  std::chrono::seconds retry_after{1};
};

/// Largest body, in bytes, that is searched for its password on the io thread.
[[nodiscard]] std::uint64_t login_body_bytes_max(const service_settings& settings);

/// Checks the password in the body of a client whose header had no credentials. Returns nothing if it is right, and
/// sets `who` to the caller. A body without a password counts as a visit, not as a wrong password.
[[nodiscard]] std::optional<login_refusal> judge_body_password(const std::optional<std::string>& password,
                                                               const std::string& client,
                                                               const service_context& context, caller_ref& who);

}  // namespace skein::request
