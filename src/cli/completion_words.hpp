#pragma once
#include <string>
#include <vector>

#include "cli/command_help.hpp"

/// What all shells are told of the command line; each has its own way to write it down.
namespace skein::cli {

/// The command with all below it.
[[nodiscard]] std::vector<const command_help*> all_commands(const command_help& of);

/// "fork" of "skein state fork".
[[nodiscard]] std::string last_word(const std::string& name);

/// With a blank between two.
[[nodiscard]] std::string in_one(const std::vector<std::string>& words);

/// What may stand behind a flag; nothing where that is anything.
[[nodiscard]] std::vector<std::string> values_of(const option_help& option);

/// Whether a value goes on behind one of these words: `--set limits.n_max=`.
[[nodiscard]] bool goes_on(const option_help& option);

/// In single quotes, as zsh and bash read them.
[[nodiscard]] std::string quoted(const std::string& text);

}  // namespace skein::cli
