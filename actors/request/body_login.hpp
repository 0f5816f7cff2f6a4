#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "actors/request/service_context.hpp"
#include "base/error.hpp"

namespace skein::request {

/// A refusal and what its Retry-After says.
struct login_refusal {
  error why;
  std::chrono::seconds retry_after{1};
};

/// The most bytes of a body that is looked through for its password on the io thread.
[[nodiscard]] std::uint64_t login_body_bytes_max(const service_settings& settings);

/// Judges the password that a body brought, or none, of a client whose header had no credentials. Nothing: it is right,
/// and `who` is whose it is. A body without a password guesses nothing; it counts as a visit.
[[nodiscard]] std::optional<login_refusal> judge_body_password(const std::optional<std::string>& password,
                                                               const std::string& client,
                                                               const service_context& context, caller_ref& who);

}  // namespace skein::request
