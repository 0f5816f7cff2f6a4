#pragma once
#include <functional>
#include <string>

#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "actors/request/generation/session_turn.hpp"
#include "actors/request/shared/service_context.hpp"
#include "base/result.hpp"
#include "protocol/requests/generation_request.hpp"
#include "protocol/responses/answer_writer.hpp"
#include "protocol/responses_api/responses_request.hpp"

namespace skein::request {

/// The answer of an already committed turn: one body, or SSE text with all events.
struct replayed_answer {
  std::string text;
  byte_budget::lease memory;  ///< of the text of a response
};

/// Writes such an answer from its record, in the form that the request asks for.
struct replay_work {
  std::function<result<replayed_answer>()> work;  ///< on any thread. Errors: those of session_turn::refusal_of,
                                                  ///< read_logged and hold_memory, and answer_too_long
  bool is_long = false;
  bool streamed = false;
};
/// A response is told as GET tells it.
[[nodiscard]] replay_work replaying(const protocol::generation_request& request,
                                    const persistence::session_replayed& replayed, const session_turn& turn,
                                    protocol::answer_head head, const byte_share& share,
                                    const service_context& context);

/// A response as it is in the log.
[[nodiscard]] protocol::logged_response logged_response_of(const persistence::version_record& version);

/// The error (too_large) for a response whose body has that many bytes.
[[nodiscard]] error answer_too_long(std::size_t bytes, std::size_t bytes_max);

}  // namespace skein::request
