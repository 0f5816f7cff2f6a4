#pragma once
#include <vector>

#include "protocol/generation_request.hpp"
#include "protocol/object_reader.hpp"

namespace skein::protocol {

/// Reads `messages`, with a `system` text before and one entry of `contents` after them as a user's turn. Reports
/// what is wrong to the body's fault; a conversation without any message is. `leniently`: roles in any spelling, and
/// messages may be raw, as clients of the older servers have them.
[[nodiscard]] std::vector<chat_message> read_messages(const object_reader& body, bool leniently = false);

/// One of them: role, content (a string or a list of text parts) and name.
[[nodiscard]] chat_message read_message(const object_reader& message, bool leniently = false);

}  // namespace skein::protocol
