#pragma once
#include <vector>

#include "base/error.hpp"
#include "config/config.hpp"

namespace skein::supervisor {

/// Why serve() would not accept the settings: opens the files and devices that they name, but no port, no state
/// directory and no weights, so that a running server is not disturbed. Errors: those of serve(), except for memory,
/// addresses, the database, and NaN or infinity among the weights. The first is the one that serve() returns; the
/// others are independent of it. Empty: serve() accepts the settings.
[[nodiscard]] std::vector<error> check(const config::config& settings);

}  // namespace skein::supervisor
