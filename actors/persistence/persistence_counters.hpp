#pragma once
#include <atomic>
#include <cstdint>

#include "base/metrics.hpp"

namespace skein::persistence {

/// One kind of states in its tiers.
struct tier_counters {
  std::atomic<std::uint32_t> vram{0}, ram{0}, disk{0}, dirty{0}, writing{0};
  std::atomic<std::uint64_t> ram_bytes{0}, disk_bytes{0}, dirty_bytes{0};
  // moves: RAM to disk, disk to RAM, out of RAM, out of disk; the first two with the microseconds that they took in all
  std::atomic<std::uint64_t> writes{0}, write_failures{0}, write_us{0};
  std::atomic<std::uint64_t> loads{0}, load_failures{0}, load_us{0};
  std::atomic<std::uint64_t> ram_drops{0}, disk_drops{0};
  std::atomic<std::uint64_t> oldest_dirty_ms{0};  ///< how long the oldest state has waited to be written
  /// When what nobody used for the longest time was used, in Unix milliseconds; 0: there is nothing.
  std::atomic<std::int64_t> ram_oldest_use_ms{0}, disk_oldest_use_ms{0};
  metrics::histogram write_seconds{metrics::first_token_bounds}, load_seconds{metrics::first_token_bounds};
};

/// What other threads may read at any time, for health, metrics and tests.
struct persistence_counters {
  tier_counters sessions, prefixes;
  std::atomic<std::uint64_t> tree_bytes{0}, unsaved_bytes{0};
  std::atomic<std::uint32_t> unsaved_sessions{0}, open_sessions{0}, leases{0}, waiters{0};
  std::atomic<std::uint64_t> turns_opened{0}, turns_committed{0}, turns_failed{0}, replays{0}, refusals{0};
  std::atomic<std::uint64_t> rebuilds{0}, rebuilt_tokens{0};  ///< turns whose base had no state, tokens fed for that
  // What all tenants have stored, and the most that one of them has; the latter is looked up once a second.
  std::atomic<std::uint64_t> stored_sessions{0}, stored_versions{0}, stored_bytes{0};
  std::atomic<std::uint64_t> largest_sessions{0}, largest_versions{0}, largest_bytes{0};
  std::atomic<std::uint64_t> damaged{0};  ///< sessions that could not be read
  std::atomic<std::uint32_t> prefixes_ready{0}, prefixes_wanted{0};
  std::atomic<std::uint64_t> prefix_token_bytes{0}, prefix_hits{0}, prefix_misses{0}, prefix_tokens{0};
  std::atomic<std::uint64_t> invariant_violations{0};  ///< how often its books did not add up
  std::atomic<bool> on_disk{false}, disk_fails{false};
  std::atomic<bool> ended{false};  ///< the thread has left its loop
};

}  // namespace skein::persistence
