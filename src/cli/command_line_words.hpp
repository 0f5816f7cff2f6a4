#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "cli/help/command_help.hpp"

namespace CLI {
class App;
}

/// What the command line says about itself: descriptions for manual pages and completions, and errors for words that it
/// does not know.
namespace skein::cli {

[[nodiscard]] command_help described(const CLI::App& app, const std::string& name);

/// The error for an unknown first word; nullopt if it is a command or a flag.
[[nodiscard]] std::optional<error> not_a_command(const CLI::App& app, const std::vector<std::string>& arguments);

/// The command that was called, and its full name.
[[nodiscard]] std::pair<const CLI::App*, std::string> called_command(const CLI::App& app);

/// The error for words that the command does not accept.
[[nodiscard]] error unexpected(const CLI::App& app);

}  // namespace skein::cli
