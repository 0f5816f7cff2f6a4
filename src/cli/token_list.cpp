#include "cli/token_list.hpp"

#include <charconv>

#include "base/text.hpp"

namespace skein::cli {
result<std::vector<token_id>> parse_tokens(std::string_view list) {
  std::vector<token_id> tokens;
  for (;;) {
    const auto comma = list.find(',');
    const std::string_view word = trimmed(list.substr(0, comma));
    token_id token = no_token;
    const auto [end, trouble] = std::from_chars(word.data(), word.data() + word.size(), token);
    if (trouble != std::errc() || end != word.data() + word.size() || token < 0)
      return error{error_kind::invalid_argument,
                   "\"" + std::string(word.substr(0, 40)) + "\" is not a token id; expected ids separated by commas",
                   {}};
    tokens.push_back(token);
    if (comma == std::string_view::npos) return tokens;
    list = list.substr(comma + 1);
  }
}

std::string to_list(std::span<const token_id> tokens) {
  std::string list;
  for (const auto token : tokens) {
    if (!list.empty()) list += ',';
    list += std::to_string(token);
  }
  return list;
}

result<void> check_tokens(std::span<const token_id> tokens, std::uint32_t vocab) {
  for (const auto token : tokens)
    if (static_cast<std::uint32_t>(token) >= vocab)
      return error{
          error_kind::invalid_argument,
          "token " + std::to_string(token) + " is out of range: the model has " + std::to_string(vocab) + " tokens",
          {}};
  return {};
}

}  // namespace skein::cli
