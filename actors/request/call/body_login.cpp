#include "actors/request/call/body_login.hpp"

#include <algorithm>
#include <utility>

#include "actors/request/call/auth.hpp"

namespace skein::request {

std::uint64_t login_body_bytes_max(const service_settings& settings) {
  return std::min<std::uint64_t>(settings.limits.unauthenticated_body_bytes_max, settings.inline_json_bytes_max);
}

std::optional<login_refusal> judge_body_password(const std::optional<std::string>& password, const std::string& client,
                                                 const service_context& context, caller_ref& who) {
  if (!password) {
    if (const auto wait = context.logins->judge_visit(client, context.time->now()))
      return login_refusal{too_many_visits(), retry_after(*wait)};
    return login_refusal{no_password()};
  }
  caller_ref found = identify(*password, context);
  if (const auto wait = context.logins->judge(client, found != nullptr, context.time->now()))
    return login_refusal{too_many_passwords(), retry_after(*wait)};
  if (!found) return login_refusal{no_password()};
  who = std::move(found);
  return std::nullopt;
}

}  // namespace skein::request
