#pragma once
#include <span>
#include <string>

#include "base/result.hpp"
#include "cli/commands.hpp"

namespace skein::cli {

/// Parses the arguments after the program's name. Values of settings (`serve`) are passed on as text; config::load
/// validates them. Errors: invalid_argument.
[[nodiscard]] result<command> parse_command_line(std::span<const std::string> arguments);

}  // namespace skein::cli
