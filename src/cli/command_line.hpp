#pragma once
#include <span>
#include <string>

#include "base/result.hpp"
#include "cli/commands.hpp"

namespace skein::cli {

/// Reads the arguments after the program's name. Values of settings (`serve`) are taken over as text: config::load
/// judges them. Errors: invalid_argument.
[[nodiscard]] result<command> parse_command_line(std::span<const std::string> arguments);

}  // namespace skein::cli
