#pragma once
#include <atomic>
#include <cstdint>

namespace skein::connection {

/// Counters of the listener and all connections, for /health and /metrics. Written by io threads, read by any thread.
struct connection_counts {
  std::atomic<std::uint32_t> open{0};      ///< open connections
  std::atomic<std::uint64_t> accepted{0};  ///< sockets taken from the acceptors
  std::atomic<std::uint64_t> refused{0};   ///< accepted sockets refused at once because of a connection limit
  std::atomic<std::uint64_t> requests{0};  ///< requests that passed the gate
  std::atomic<std::uint32_t> streams{0};   ///< responses being streamed
};

}  // namespace skein::connection
