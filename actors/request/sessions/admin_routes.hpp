#pragma once
#include "actors/request/sessions/session_call.hpp"
#include "actors/request/sessions/session_routes.hpp"

namespace skein::request {

/// POST /admin/state/ACTION, and PUT for import: `skein state` while the server runs. Query fields: tenant, id, to,
/// version, into, replace, states, json. The body is the file to import, or the key with which export signs. The answer
/// is one line ("ok", or an error kind and a sentence), then the output of the command. Actions that change sessions
/// are ordinary messages to the persistence actor. Actions that only read use a hard-linked copy of the store.
[[nodiscard]] session_question administer(const session_routes::route_input& in);

}  // namespace skein::request
