#pragma once
#include <string>
#include <vector>

#include "cli/help/command_help.hpp"

/// The parts of shell completions that are common to all shells.
namespace skein::cli {

/// The command and all its subcommands, recursively.
[[nodiscard]] std::vector<const command_help*> all_commands(const command_help& of);

/// "fork" of "skein state fork".
[[nodiscard]] std::string last_word(const std::string& name);

/// The words joined by blanks.
[[nodiscard]] std::string in_one(const std::vector<std::string>& words);

/// The values that a flag accepts; empty if it accepts any.
[[nodiscard]] std::vector<std::string> values_of(const option_help& option);

/// Whether the value continues after one of these words: `--set limits.n_max=`.
[[nodiscard]] bool goes_on(const option_help& option);

/// The text in single quotes for zsh and bash.
[[nodiscard]] std::string quoted(const std::string& text);

}  // namespace skein::cli
