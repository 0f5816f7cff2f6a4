#pragma once
#include "base/result.hpp"
#include "config/config.hpp"

namespace skein::supervisor {

/// Whether serve() would accept the settings: opens the files and devices that they name, but no port, no state
/// directory and no weights, so that a running server is not disturbed. Errors: those of serve(), except for memory,
/// addresses, the database, and NaN or infinity among the weights.
[[nodiscard]] result<void> check(const config::config& settings);

}  // namespace skein::supervisor
