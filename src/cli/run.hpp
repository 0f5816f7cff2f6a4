#pragma once
#include <functional>

#include "cli/commands.hpp"
#include "config/config.hpp"
#include "config/load.hpp"

namespace skein::cli {

/// Runs the server until it ends; passed by main, so that commands do not depend on actors.
/// `again` reads the settings again from the same sources.
using serve_function = result<void> (*)(const config::config& settings, const std::function<config::loaded()>& again);

/// Executes a command, prints its errors, one line each, and returns the exit code of the process.
[[nodiscard]] int run(const command& what, serve_function serve);

/// Prints an error as the program's last line and returns its exit code.
[[nodiscard]] int fail(const error& why);

}  // namespace skein::cli
