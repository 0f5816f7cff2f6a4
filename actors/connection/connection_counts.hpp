#pragma once
#include <atomic>
#include <cstdint>

namespace skein::connection {

/// What the listener and all connections count, for /health and /metrics. Written by io threads, read by anyone.
struct connection_counts {
  std::atomic<std::uint32_t> open{0};      ///< connections that live now
  std::atomic<std::uint64_t> accepted{0};  ///< sockets taken from the acceptors
  std::atomic<std::uint64_t> refused{0};   ///< of these, turned away at once: too many
  std::atomic<std::uint64_t> requests{0};  ///< requests that passed the gate
  std::atomic<std::uint32_t> streams{0};   ///< responses that are being streamed now
};

}  // namespace skein::connection
