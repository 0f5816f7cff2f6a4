#pragma once
#include <memory>

#include "engine/backend.hpp"
#include "engine/engine.hpp"

namespace skein::engine {

/// An engine whose back end is driven by one thread of the host. Calls queue commands in a bounded queue and return at
/// once (they wait for room when far ahead); the thread runs them in order. A tick is launched as soon as its turn
/// comes, also while the device still computes the one before, so that a device never waits for the host; it is
/// completed when the device has done it. Ticks live in a ring of buffers taken at the start, so a decode tick
/// allocates nothing. A command that throws loses the device (internal). The destructor stops after the command that
/// runs now; queued ones are dropped. `info.ticks_in_flight_max` is set here.
[[nodiscard]] std::unique_ptr<engine> make_host_engine(engine_info info, std::unique_ptr<backend> work);

}  // namespace skein::engine
