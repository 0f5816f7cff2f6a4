#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cli/help/command_help.hpp"

namespace skein::cli {

/// The pages that `manual` generates: "skein.1", "skein.toml.5", "skein.toml" (the shipped file), "bash", "zsh" and
/// "fish".
[[nodiscard]] std::vector<std::string> manual_pages();

/// A page by name: a manual page for man(1) or a shell completion. Generated from the tables that parse flags and
/// settings, so they always agree.
[[nodiscard]] std::string manual(std::string_view page);

/// Shell completions: commands, flags, the accepted values of flags, the keys of --set.
[[nodiscard]] std::string bash_completion(const command_help& program);
[[nodiscard]] std::string zsh_completion(const command_help& program);
[[nodiscard]] std::string fish_completion(const command_help& program);

}  // namespace skein::cli
