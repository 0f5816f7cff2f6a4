#pragma once
#include "base/result.hpp"
#include "config/config.hpp"

namespace skein::supervisor {

/// Runs the server until a signal ends it: loads the model, starts the actors in order, listens, drains on SIGTERM or
/// SIGINT, stops the actors in reverse order. A second signal shortens the drain to "now".
/// Errors: what kept it from starting (model, device, address), or `unavailable` when the device was lost.
[[nodiscard]] result<void> serve(const config::config& settings);

}  // namespace skein::supervisor
