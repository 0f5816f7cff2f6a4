#include "protocol/responses_api/response_id.hpp"

#include "protocol/responses/answer.hpp"

namespace skein::protocol {
namespace {

constexpr std::string_view conversation_prefix = "conv_", response_prefix = "resp_";
constexpr std::size_t digits = 2 * std::tuple_size_v<random_name>;

bool is_hex(std::string_view text) { return text.find_first_not_of("0123456789abcdef") == std::string_view::npos; }

/// The part after the prefix, if it consists of `count` hex digits.
std::optional<std::string_view> digits_of(std::string_view id, std::string_view prefix, std::size_t count) {
  if (!id.starts_with(prefix)) return std::nullopt;
  id.remove_prefix(prefix.size());
  return id.size() == count && is_hex(id) ? std::optional(id) : std::nullopt;
}

}  // namespace

std::string conversation_id(const random_name& random) { return answer_id(conversation_prefix, random); }

bool is_conversation_id(std::string_view id) { return digits_of(id, conversation_prefix, digits).has_value(); }

std::string response_id(std::string_view conversation, const random_name& random) {
  const std::string_view of = conversation.substr(conversation_prefix.size());
  return answer_id(std::string(response_prefix).append(of), random);
}

std::optional<std::string> conversation_of(std::string_view response) {
  const auto names = digits_of(response, response_prefix, 2 * digits);
  if (!names) return std::nullopt;
  return std::string(conversation_prefix).append(names->substr(0, digits));
}

std::string item_id(std::string_view prefix, std::string_view response) {
  return std::string(prefix).append(response.substr(response.find('_') + 1));
}

}  // namespace skein::protocol
