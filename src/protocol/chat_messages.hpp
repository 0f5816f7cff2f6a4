#pragma once
#include <vector>

#include "protocol/generation_request.hpp"
#include "protocol/object_reader.hpp"

namespace skein::protocol {

/// Reads `messages`, with a `system` text before and one entry of `contents` after them as a user's turn. Reports
/// what is wrong to the body's fault; a conversation without any message is.
[[nodiscard]] std::vector<chat_message> read_messages(const object_reader& body);

/// One of them: role, content (a string or a list of text parts) and name.
[[nodiscard]] chat_message read_message(const object_reader& message);

}  // namespace skein::protocol
