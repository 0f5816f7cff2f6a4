#pragma once
#include <memory>

#include "engine/backend.hpp"
#include "engine/engine.hpp"

namespace skein::engine {

/// An engine whose back end is driven by one host thread. Calls put commands into a bounded queue and return at once
/// (they wait only when the queue is full); the thread runs them in order. A tick is launched when its turn comes, even
/// while the device still computes the previous one, so that the device never waits for the host. Ticks use a ring of
/// buffers allocated at the start, so a decode tick does not allocate. A command that throws loses the device
/// (internal). The destructor stops after the running command and drops queued ones. Sets `info.ticks_in_flight_max`.
[[nodiscard]] std::unique_ptr<engine> make_host_engine(engine_info info, std::unique_ptr<backend> work);

}  // namespace skein::engine
