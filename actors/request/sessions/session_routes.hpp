#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "actors/request/sessions/session_call.hpp"
#include "protocol/requests/generation_request.hpp"

/// The question and the answer of each route about sessions. `path` has the wildcard parts of the route: the session's
/// id.
namespace skein::request::session_routes {

struct route_input {
  std::vector<std::string> path;
  std::string query;
  protocol::request_limits limits;
};

[[nodiscard]] session_question list(const route_input& in);
[[nodiscard]] session_question describe(const route_input& in);
[[nodiscard]] session_question versions(const route_input& in);
[[nodiscard]] session_question label(const route_input& in);
[[nodiscard]] session_question fork(const route_input& in);
[[nodiscard]] session_question rollback(const route_input& in);
[[nodiscard]] session_question export_file(const route_input& in);
[[nodiscard]] session_question import_file(const route_input& in);
[[nodiscard]] session_question remove(const route_input& in);
// of the older servers
[[nodiscard]] session_question state_status(const route_input& in);
[[nodiscard]] session_question state_delete(const route_input& in);

}  // namespace skein::request::session_routes
