#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace skein::cli {

/// Ids with commas between them, white space anywhere around. Errors: invalid_argument, also for an empty list.
[[nodiscard]] result<std::vector<token_id>> parse_tokens(std::string_view list);

/// "1,2,3"
[[nodiscard]] std::string to_list(std::span<const token_id> tokens);

/// invalid_argument, naming the token, unless all are below `vocab`.
[[nodiscard]] result<void> check_tokens(std::span<const token_id> tokens, std::uint32_t vocab);

}  // namespace skein::cli
