#pragma once
#include <functional>

#include "base/result.hpp"
#include "config/config.hpp"
#include "config/load.hpp"

namespace skein::supervisor {

/// Runs the server until a signal ends it: listens, loads the model while requests are answered 503, starts the actors
/// in order, drains on SIGTERM or SIGINT, stops the actors in reverse order. A second signal shortens the drain to
/// "now"; a signal while the model loads ends the process with exit code 0 from in here, and a device that does not end
/// with the drain ends it with 70.
/// SIGHUP takes live settings and keys from what `again` reads; where that has faults, all stays as it is.
/// Errors: what kept it from starting (address, model, device), or `internal` when the device was lost while it served.
[[nodiscard]] result<void> serve(const config::config& settings, const std::function<config::loaded()>& again);

}  // namespace skein::supervisor
