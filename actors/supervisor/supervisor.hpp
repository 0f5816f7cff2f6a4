#pragma once
#include <functional>

#include "base/result.hpp"
#include "config/config.hpp"
#include "config/load.hpp"

namespace skein::supervisor {

/// Runs the server until a signal ends it: listens, loads the model while requests get 503, starts the actors in order,
/// drains on SIGTERM or SIGINT, and stops the actors in reverse order. A second signal ends the drain at once. A signal
/// while the model loads exits the process with code 0 from within this function; a device that does not end after the
/// drain exits it with 70. SIGHUP applies live settings and keys read by `again`; if they have faults, nothing changes.
/// Errors: those that prevent the start (address, model, device), or `internal` if the device is lost while serving.
[[nodiscard]] result<void> serve(const config::config& settings, const std::function<config::loaded()>& again);

}  // namespace skein::supervisor
