#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_help.hpp"

namespace skein::cli {

/// "skein.1", "skein.toml.5", "bash", "zsh" and "fish": what `manual` makes.
[[nodiscard]] std::vector<std::string> manual_pages();

/// The page of that name: both manual pages for man(1), or the completion of a shell. Made of the tables that flags and
/// settings are read by, so that none of them can say anything else.
[[nodiscard]] std::string manual(std::string_view page);

/// What a shell is to know of the command line: commands, flags, the words that are legal behind a flag, the keys of
/// --set.
[[nodiscard]] std::string bash_completion(const command_help& program);
[[nodiscard]] std::string zsh_completion(const command_help& program);
[[nodiscard]] std::string fish_completion(const command_help& program);

}  // namespace skein::cli
