#pragma once
#include <vector>

#include "protocol/requests/generation_request.hpp"
#include "protocol/requests/object_reader.hpp"

namespace skein::protocol {

/// Reads `messages`, preceded by the text `system` and followed by one entry of `contents` as a user turn. Reports
/// errors to the body's fault, also for a conversation without messages. `leniently`: accepts roles in any case and raw
/// messages, as clients of the older servers send them. `form`: of calls in a history.
[[nodiscard]] std::vector<chat_message> read_messages(const object_reader& body, bool leniently = false,
                                                      turn_form form = turn_form::names);

/// Reads one message: role, content (a string or a list of text parts) and name.
[[nodiscard]] chat_message read_message(const object_reader& message, bool leniently = false,
                                        turn_form form = turn_form::names);

}  // namespace skein::protocol
