#include "actors/persistence/states/tier_mover.hpp"

#include <chrono>
#include <utility>

#include "base/log/log.hpp"

namespace skein::persistence {
namespace {

std::uint64_t microseconds_since(steady_time from) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - from).count());
}

/// Reads a state. An error of the disk may pass: it is tried again at once.
result<std::optional<storage::decoded_state>> read_state(storage::state_store& states, const state_key& key) {
  constexpr int attempts = 3;
  for (int attempt = 1;; ++attempt) {
    auto got = guarded(error_kind::no_memory, [&] { return states.get(key); });
    if (got || got.error().kind != error_kind::io || attempt == attempts) return got;
  }
}

}  // namespace

tier_mover::tier_mover(const tier_limits& limits, std::shared_ptr<storage::state_store> states, job_runner& runner,
                       const clock& time, wall_clock wall, events told)
    : limits_(limits),
      cache_(limits),
      states_(std::move(states)),
      runner_(runner),
      time_(time),
      wall_(std::move(wall)),
      told_(std::move(told)) {}

bool tier_mover::load(const state_key& key) {
  if (loading_.contains(key)) return true;
  const std::size_t state_bytes = states_->models().state_bytes_max();
  const std::size_t room = std::max(limits_.ram_bytes_max, state_bytes) + limits_.dirty_bytes_max;
  const std::size_t reserved = (loading_.size() + 1) * state_bytes;
  cache_.reserve(reserved);
  move(disk_works_, false);
  if (!cache_.readable(key) || cache_.count().ram_bytes + reserved > room) {
    cache_.reserve(reserved - state_bytes);
    return false;
  }
  loading_.insert(key);
  runner_.run([this, key, states = states_]() -> aftermath {
    const auto began = std::chrono::steady_clock::now();
    auto got = std::make_shared<result<std::optional<storage::decoded_state>>>(read_state(*states, key));
    const std::uint64_t took = microseconds_since(began);
    return [this, key, got, took] {
      loading_.erase(key);
      cache_.reserve(loading_.size() * states_->models().state_bytes_max());
      moves_.load_us += took;
      moves_.load_seconds.observe(static_cast<double>(took) * 1e-6);
      if (*got && **got) {
        ++moves_.loads;
        auto& state = ***got;
        cache_.loaded(key, std::make_shared<const model::state_value>(std::move(state.state)),
                      {state.label.tenant, state.label.tokens, state.label.model_identity});
      } else {
        ++moves_.load_failures;
        log::error("a stored state cannot be read; it will be rebuilt from tokens",
                   {{"owner", key.owner},
                    {"number", key.number},
                    {"why", *got ? std::string("not found") : got->error().message}});
        const bool was_on_disk = cache_.unreadable(key);
        // Nothing else would remove its record before the next start. What is intact or damaged, or of another format,
        // stays.
        if (was_on_disk && !*got && got->error().kind == error_kind::io) remove_from_disk({key});
        if (!cache_.readable(key)) told_.lost(key);
      }
      told_.loaded(key);
    };
  });
  return true;
}

void tier_mover::begin_write(const state_key& key) {
  auto write = told_.writer(key, cache_.buffer(key));
  runner_.run([this, key, write = std::move(write), states = states_]() -> aftermath {
    const auto began = std::chrono::steady_clock::now();
    const auto outcome = guarded(error_kind::io, [&] { return write(*states); });
    const std::uint64_t took = microseconds_since(began);
    const std::string why = outcome ? std::string() : outcome.error().message;
    return [this, key, took, why, well = static_cast<bool>(outcome)] {
      moves_.write_us += took;
      moves_.write_seconds.observe(static_cast<double>(took) * 1e-6);
      ++(well ? moves_.writes : moves_.write_failures);
      if (!well) log::warning("a state cannot be written", {{"why", why}});
      const std::size_t bytes = states_->record_bytes(cache_.label_of(key).model);
      if (!cache_.written(key, well, bytes, time_.now())) remove_from_disk({key});
    };
  });
}

void tier_mover::remove_from_disk(std::vector<state_key> keys) {
  moves_.removals += keys.size();
  runner_.run([keys = std::move(keys), states = states_]() -> aftermath {
    for (const auto& key : keys)
      ignore(guarded(error_kind::io, [&] { return states->remove(key); }),
             "a state that stays is counted again after the next start");
    return [] {};
  });
}

void tier_mover::move(bool disk_works, bool flush) {
  disk_works_ = disk_works;
  auto decided = cache_.plan(time_.now(), wall_(), disk_works, flush);
  for (const auto& key : decided.write) begin_write(key);
  if (!decided.drop_disk.empty()) remove_from_disk(std::move(decided.drop_disk));
  for (const auto& key : decided.lost) told_.lost(key);
}

void tier_mover::erase(const state_key& key) {
  const bool was_readable = cache_.readable(key);
  cache_.forget(key);
  if (was_readable && limits_.disk_bytes_max > 0) remove_from_disk({key});
}

void publish_tier(const tier_mover& tiers, steady_time now, tier_counters& to) {
  const auto c = tiers.cache().count();
  const move_counts& m = tiers.moves();
  to.vram = c.vram;
  to.ram = c.ram;
  to.disk = c.disk;
  to.dirty = c.dirty;
  to.writing = c.writing;
  to.ram_bytes = c.ram_bytes;
  to.disk_bytes = c.disk_bytes;
  to.dirty_bytes = c.dirty_bytes;
  to.ram_drops = c.ram_drops;
  to.disk_drops = c.disk_drops;
  to.writes = m.writes;
  to.write_failures = m.write_failures;
  to.write_us = m.write_us;
  to.loads = m.loads;
  to.load_failures = m.load_failures;
  to.load_us = m.load_us;
  to.write_seconds.mirror(m.write_seconds);
  to.load_seconds.mirror(m.load_seconds);
  to.ram_oldest_use_ms = c.ram_oldest_use_ms;
  to.disk_oldest_use_ms = c.disk_oldest_use_ms;
  const auto age = c.oldest_dirty ? now - *c.oldest_dirty : duration::zero();
  to.oldest_dirty_ms = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(age).count());
}

}  // namespace skein::persistence
