#pragma once
#include "actors/request/sessions/session_routes.hpp"

/// Routes of the Responses API that one question to the persistence actor answers.
namespace skein::request::response_routes {

using session_routes::route_input;

/// GET /v1/responses/{id}/input_items
[[nodiscard]] session_question input_items(const route_input& in);
/// DELETE /v1/responses/{id}
[[nodiscard]] session_question remove(const route_input& in);
/// POST /v1/conversations: a session without turns.
[[nodiscard]] session_question make_conversation(const route_input& in);
/// GET, POST, DELETE /v1/conversations/{id}
[[nodiscard]] session_question conversation(const route_input& in);
[[nodiscard]] session_question change_conversation(const route_input& in);
[[nodiscard]] session_question remove_conversation(const route_input& in);
/// GET /v1/conversations/{id}/items and .../items/{item}
[[nodiscard]] session_question conversation_items(const route_input& in);
[[nodiscard]] session_question conversation_item(const route_input& in);

}  // namespace skein::request::response_routes
