#pragma once
#include "actors/request/session_call.hpp"
#include "actors/request/session_routes.hpp"

namespace skein::request {

/// POST /admin/state/ACTION, and PUT for import: `skein state` while the server runs. Fields of the query: tenant, id,
/// to, version, into, replace, states, json; the body is the file of import, or the key that export signs with. The
/// answer is a line, "ok" or a kind of error and a sentence, and then what is printed. What changes sessions goes the
/// way of all such changes; what only reads does so in a copy of the store, made of links, as a directory that nobody
/// uses.
[[nodiscard]] session_question administer(const session_routes::route_input& in);

}  // namespace skein::request
