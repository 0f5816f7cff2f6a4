#pragma once
#include <string>

#include "actors/persistence/persistence_mailbox.hpp"
#include "actors/request/session_turn.hpp"
#include "protocol/answer_writer.hpp"
#include "protocol/generation_request.hpp"

namespace skein::request {

/// The answer of an already committed turn, from its record: as SSE text with [DONE] or as one body, as requested.
[[nodiscard]] std::string replay(const protocol::generation_request& request,
                                 const persistence::session_replayed& replayed, const session_turn& turn,
                                 protocol::answer_head head);

}  // namespace skein::request
