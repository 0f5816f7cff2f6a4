#pragma once
#include <atomic>
#include <cstdint>

#include "base/metrics/metrics.hpp"

namespace skein::persistence {

/// The states of sessions, or those of prefixes, in each tier.
struct tier_counters {
  std::atomic<std::uint32_t> vram{0}, ram{0}, disk{0}, dirty{0}, writing{0};
  std::atomic<std::uint64_t> ram_bytes{0}, disk_bytes{0}, dirty_bytes{0};
  // moves: RAM to disk, disk to RAM, dropped from RAM, dropped from disk; the first two with their total microseconds
  std::atomic<std::uint64_t> writes{0}, write_failures{0}, write_us{0};
  std::atomic<std::uint64_t> loads{0}, load_failures{0}, load_us{0};
  std::atomic<std::uint64_t> ram_drops{0}, disk_drops{0};
  std::atomic<std::uint64_t> oldest_dirty_ms{0};  ///< how long the oldest dirty state has waited to be written
  /// Last use of the least recently used state, in Unix milliseconds; 0: the tier is empty.
  std::atomic<std::int64_t> ram_oldest_use_ms{0}, disk_oldest_use_ms{0};
  metrics::histogram write_seconds{metrics::first_token_bounds}, load_seconds{metrics::first_token_bounds};
};

/// Counters that other threads may read at any time, for health, metrics and tests.
struct persistence_counters {
  tier_counters sessions, prefixes;
  std::atomic<std::uint64_t> tree_bytes{0}, unsaved_bytes{0};
  std::atomic<std::uint32_t> unsaved_sessions{0}, open_sessions{0}, leases{0}, waiters{0};
  std::atomic<std::uint64_t> turns_opened{0}, turns_committed{0}, turns_failed{0}, replays{0}, refusals{0};
  std::atomic<std::uint64_t> rebuilds{0}, rebuilt_tokens{0};  ///< turns whose base had no state; tokens fed for them
  // Totals of all tenants, and the maximum over tenants, which is updated once a second.
  std::atomic<std::uint64_t> stored_sessions{0}, stored_versions{0}, stored_bytes{0};
  std::atomic<std::uint64_t> largest_sessions{0}, largest_versions{0}, largest_bytes{0};
  std::atomic<std::uint64_t> damaged{0};  ///< sessions that could not be read
  std::atomic<std::uint32_t> prefixes_ready{0}, prefixes_wanted{0};
  std::atomic<std::uint64_t> prefix_token_bytes{0}, prefix_hits{0}, prefix_misses{0}, prefix_tokens{0};
  std::atomic<std::uint64_t> invariant_violations{0};  ///< failed self checks
  std::atomic<bool> on_disk{false}, disk_fails{false};
  std::atomic<bool> ended{false};  ///< the thread has left its loop
};

}  // namespace skein::persistence
