#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Names of the Responses API. A conversation is a session, named "conv_" and 24 hex digits. A response is a turn of
/// it, named "resp_", the same digits and 24 of its own; that name is the turn's request key, so nothing has to be
/// looked up to find either.
namespace skein::protocol {

using random_name = std::array<std::uint8_t, 12>;

[[nodiscard]] std::string conversation_id(const random_name& random);
[[nodiscard]] bool is_conversation_id(std::string_view id);

/// Of a turn in that conversation, whose id must be one.
[[nodiscard]] std::string response_id(std::string_view conversation, const random_name& random);
/// The conversation of a response; nothing for what is no response's id.
[[nodiscard]] std::optional<std::string> conversation_of(std::string_view response);

/// The id of an item of a response: "msg_...", "rs_...".
[[nodiscard]] std::string item_id(std::string_view prefix, std::string_view response);

}  // namespace skein::protocol
