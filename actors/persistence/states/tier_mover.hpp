#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "actors/persistence/shared/persistence_counters.hpp"
#include "actors/persistence/states/state_worker.hpp"
#include "actors/persistence/states/tiered_cache.hpp"
#include "base/metrics/metrics.hpp"
#include "storage/states/state_store.hpp"

namespace skein::persistence {

/// Unix time in milliseconds.
using wall_clock = std::function<std::int64_t()>;

/// Counts of state transfers, and their total time.
struct move_counts {
  std::uint64_t writes = 0, write_failures = 0, write_us = 0;
  std::uint64_t loads = 0, load_failures = 0, load_us = 0;
  std::uint64_t removals = 0;  // from the disk
  metrics::histogram write_seconds{metrics::first_token_bounds}, load_seconds{metrics::first_token_bounds};
};

/// Carries out the decisions of a tiered_cache: reads and writes states in jobs. For the persistence thread only.
class tier_mover {
 public:
  /// Writes one state; called on the worker's thread.
  using write = std::function<result<void>(storage::state_store&)>;
  struct events {
    /// A load has ended: the state is in RAM, or it is lost.
    std::function<void(const state_key&)> loaded;
    /// A state is no longer in RAM or on disk.
    std::function<void(const state_key&)> lost;
    /// Makes the function that writes a state in RAM.
    std::function<write(const state_key&, state_buffer)> writer;
  };

  /// `states`, `runner` and `time` outlive it; jobs do not outlive `runner`.
  tier_mover(const tier_limits& limits, std::shared_ptr<storage::state_store> states, job_runner& runner,
             const clock& time, wall_clock wall, events told);

  [[nodiscard]] tiered_cache& cache() { return cache_; }
  [[nodiscard]] const tiered_cache& cache() const { return cache_; }

  /// Starts to read a state from disk. False: RAM has no room until other states are returned or written; writes that
  /// make room are started.
  [[nodiscard]] bool load(const state_key& key);
  [[nodiscard]] bool loading(const state_key& key) const { return loading_.contains(key); }
  /// Drops the states that are due, and starts the writes that are due.
  void move(bool disk_works, bool flush);
  /// Removes a state from all tiers.
  void erase(const state_key& key);
  /// Nothing is being written.
  [[nodiscard]] bool settled() const { return cache_.count().writing == 0; }
  [[nodiscard]] const move_counts& moves() const { return moves_; }

 private:
  void begin_write(const state_key& key);
  void remove_from_disk(std::vector<state_key> keys);

  tier_limits limits_;
  tiered_cache cache_;
  std::shared_ptr<storage::state_store> states_;
  job_runner& runner_;
  const clock& time_;
  wall_clock wall_;
  events told_;
  std::set<state_key> loading_;
  bool disk_works_ = false;  // at the last move()
  move_counts moves_;
};

/// Copies the counts of `tiers` to the counters; `now` gives the age of the oldest dirty state.
void publish_tier(const tier_mover& tiers, steady_time now, tier_counters& to);

}  // namespace skein::persistence
