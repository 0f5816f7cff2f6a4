#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "actors/persistence/state_worker.hpp"
#include "actors/persistence/tiered_cache.hpp"
#include "base/metrics.hpp"
#include "storage/state_store.hpp"

namespace skein::persistence {

/// Unix time in milliseconds.
using wall_clock = std::function<std::int64_t()>;

/// How often states moved, and how long that took in all.
struct move_counts {
  std::uint64_t writes = 0, write_failures = 0, write_us = 0;
  std::uint64_t loads = 0, load_failures = 0, load_us = 0;
  std::uint64_t removals = 0;  // from the disk
  metrics::histogram write_seconds{metrics::first_token_bounds}, load_seconds{metrics::first_token_bounds};
};

/// Carries out what a tiered_cache decides: reads and writes states by jobs. Lives on the persistence thread.
class tier_mover {
 public:
  /// Writes one state; called on the worker's thread.
  using write = std::function<result<void>(storage::state_store&)>;
  struct events {
    /// A load is over: the state is in RAM, or nowhere.
    std::function<void(const state_key&)> loaded;
    /// A state is in neither RAM nor disk since now.
    std::function<void(const state_key&)> lost;
    /// How a state in RAM is written.
    std::function<write(const state_key&, state_buffer)> writer;
  };

  /// `states`, `runner` and `time` outlive it; jobs do not outlive `runner`.
  tier_mover(const tier_limits& limits, std::shared_ptr<storage::state_store> states, job_runner& runner,
             const clock& time, wall_clock wall, events told);

  [[nodiscard]] tiered_cache& cache() { return cache_; }
  [[nodiscard]] const tiered_cache& cache() const { return cache_; }

  /// Begins to read a state that is on disk. False: RAM has no room for it until others are given back or
  /// written; what can make room for it begins to.
  [[nodiscard]] bool load(const state_key& key);
  [[nodiscard]] bool loading(const state_key& key) const { return loading_.contains(key); }
  /// Drops, and begins to write, what is due.
  void move(bool disk_works, bool flush);
  /// Takes a state out of all tiers.
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
  bool disk_works_ = false;  // when it was last looked at
  move_counts moves_;
};

}  // namespace skein::persistence
