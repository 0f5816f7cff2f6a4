#pragma once
#include <string>

#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "actors/request/generation/session_turn.hpp"
#include "protocol/requests/generation_request.hpp"
#include "protocol/responses/answer_writer.hpp"

namespace skein::request {

/// The answer of an already committed turn, from its record: as SSE text with [DONE] or as one body, as requested.
[[nodiscard]] std::string replay(const protocol::generation_request& request,
                                 const persistence::session_replayed& replayed, const session_turn& turn,
                                 protocol::answer_head head);

}  // namespace skein::request
