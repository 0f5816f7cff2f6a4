#include "actors/request/body_login.hpp"

#include "actors/request/auth.hpp"

namespace skein::request {

std::optional<login_refusal> judge_body_password(const std::optional<std::string>& password, const std::string& client,
                                                 const service_context& context) {
  if (!password) return login_refusal{no_password()};
  const bool right = same_secret(*password, context.settings.password);
  if (const auto wait = context.logins->judge(client, right, context.time->now()))
    return login_refusal{too_many_passwords(), retry_after(*wait)};
  if (!right) return login_refusal{no_password()};
  return std::nullopt;
}

}  // namespace skein::request
