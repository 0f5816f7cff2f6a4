#pragma once
#include <exception>
#include <functional>
#include <vector>

#include "cli/commands.hpp"
#include "config/config.hpp"
#include "config/load.hpp"

namespace skein::cli {

/// The server; passed by main, so that commands do not depend on actors.
struct server_functions {
  /// Runs the server until it ends. `again` reads the settings again from the same sources.
  result<void> (*serve)(const config::config& settings, const std::function<config::loaded()>& again);
  /// Why `serve` would not accept the settings: all reasons that do not depend on each other. Empty: it would.
  std::vector<error> (*check)(const config::config& settings);
};

/// Executes a command, prints its errors, one line each, and returns the exit code of the process.
[[nodiscard]] int run(const command& what, const server_functions& server);

/// Prints an error as the program's last line and returns its exit code.
[[nodiscard]] int fail(const error& why);
[[nodiscard]] int fail(const std::exception& trouble);

}  // namespace skein::cli
