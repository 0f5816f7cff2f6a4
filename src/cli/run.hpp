#pragma once
#include <functional>

#include "cli/commands.hpp"
#include "config/config.hpp"
#include "config/load.hpp"

namespace skein::cli {

/// Runs the server to its end; given by main, since commands know no actors.
/// `again` reads the settings anew, as they were read.
using serve_function = result<void> (*)(const config::config& settings, const std::function<config::loaded()>& again);

/// Carries a command out, prints its errors, one line each, and returns the exit code of the process.
[[nodiscard]] int run(const command& what, serve_function serve);

/// Prints an error as the program's last line and returns its exit code.
[[nodiscard]] int fail(const error& why);

}  // namespace skein::cli
