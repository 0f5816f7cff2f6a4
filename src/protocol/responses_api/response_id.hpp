#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Ids of the Responses API. A conversation is a session with the id "conv_" and 24 hex digits. A response is a turn of
/// it with the id "resp_", the same digits and 24 more. This id is the turn's request key, so both are found without an
/// index.
namespace skein::protocol {

using random_name = std::array<std::uint8_t, 12>;

[[nodiscard]] std::string conversation_id(const random_name& random);
[[nodiscard]] bool is_conversation_id(std::string_view id);

/// The id of a turn in a conversation; `conversation` must be a conversation id.
[[nodiscard]] std::string response_id(std::string_view conversation, const random_name& random);
/// The conversation of a response; nullopt if `response` is not a response id.
[[nodiscard]] std::optional<std::string> conversation_of(std::string_view response);

/// The id of an item of a response: "msg_...", "rs_...".
[[nodiscard]] std::string item_id(std::string_view prefix, std::string_view response);

}  // namespace skein::protocol
