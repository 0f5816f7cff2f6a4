#pragma once
#include "base/log/log.hpp"
#include "config/load.hpp"

namespace skein::cli {

/// config::load with the process's own environment added.
[[nodiscard]] config::loaded load_settings(config::sources from);

/// Prints every fault on a line of stderr; returns the exit code.
[[nodiscard]] int report_faults(const config::loaded& merged);

/// Prints the merged settings as TOML; returns the exit code.
[[nodiscard]] int print_settings(const config::loaded& merged);

/// The log options that follow from the settings.
[[nodiscard]] log::options log_options(const config::log_settings& from);

}  // namespace skein::cli
