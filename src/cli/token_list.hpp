#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace skein::cli {

/// Parses ids separated by commas and optional white space. Errors: invalid_argument, also for an empty list.
[[nodiscard]] result<std::vector<token_id>> parse_tokens(std::string_view list);

/// "1,2,3"
[[nodiscard]] std::string to_list(std::span<const token_id> tokens);

/// Errors: invalid_argument, naming the token, if one is not below `vocab`.
[[nodiscard]] result<void> check_tokens(std::span<const token_id> tokens, std::uint32_t vocab);

}  // namespace skein::cli
