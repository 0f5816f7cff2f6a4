#include "actors/persistence/keeper/session_keeper.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log/log.hpp"

namespace skein::persistence {

session_keeper::session_keeper(const persistence_options& options, keeper_ports ports, persistence_counters& counters)
    : options_(options),
      ports_(std::move(ports)),
      counters_(counters),
      log_(ports_.db, options.sessions.unsaved_bytes_max),
      book_(options.sessions),
      quota_(options.sessions),
      tiers_(options.session_states, ports_.states, ports_.runner, ports_.time, ports_.wall,
             {[this](const state_key& key) { resolve_waiting(key); }, [](const state_key&) {},
              [this](const state_key& key, state_buffer state) { return writer_of(key, std::move(state)); }}) {}

tier_mover::write session_keeper::writer_of(const state_key& key, state_buffer state) const {
  const auto what = tiers_.cache().label_of(key);
  storage::state_label label{what.model, what.tenant, key, what.tokens};
  return [label = std::move(label), state = std::move(state)](storage::state_store& store) {
    return store.put(label, *state);
  };
}

void session_keeper::begin() {
  counters_.on_disk = log_.on_disk();
  if (!log_.on_disk()) return;
  ignore(ports_.states->drop_incomplete(), "incomplete states are unreachable");
  ignore(log_.store().drop_staged(), "staged versions are unreachable");
  log_.store().trim_forks();
  if (auto amounts = log_.store().amounts(); amounts)
    quota_.begin_with(std::move(*amounts));
  else
    log::error("stored sessions cannot be counted; tenant limits count only sessions of this process",
               {{"why", amounts.error().message}});
  look_for_largest(ports_.time.now());
  publish();  // even if no message arrives
  auto stored = ports_.states->list();
  if (!stored) {
    log::error("stored states cannot be listed; they will be rebuilt from tokens", {{"why", stored.error().message}});
    return;
  }
  if (auto tenants = log_.store().tenants(); tenants)  // age_out() checks their sessions
    tenants_.insert(tenants->begin(), tenants->end());
  std::ranges::sort(*stored, {}, &storage::stored_state::used_ms);
  for (const auto& state : *stored) tiers_.cache().found(state.key, state.bytes, state.used_ms);
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

/// Visits all tenants, so it runs at most once a second.
void session_keeper::look_for_largest(steady_time now) {
  if (now < next_quota_look_) return;
  next_quota_look_ = now + std::chrono::seconds(1);
  const stored_amount most = quota_.largest();
  counters_.largest_sessions = most.sessions;
  counters_.largest_versions = most.versions;
  counters_.largest_bytes = most.bytes;
}

void session_keeper::publish() const {
  publish_tier(tiers_, ports_.time.now(), counters_.sessions);
  counters_.tree_bytes = book_.tree_bytes();
  counters_.stored_sessions = quota_.total().sessions;
  counters_.stored_versions = quota_.total().versions;
  counters_.stored_bytes = quota_.total().bytes;
  counters_.open_sessions = book_.entries();
  counters_.leases = book_.leases();
  counters_.waiters = book_.waiters();
  counters_.unsaved_bytes = log_.unsaved_bytes();
  counters_.unsaved_sessions = static_cast<std::uint32_t>(log_.unsaved_sessions());
  counters_.disk_fails = log_.failing();
}

std::optional<std::string> session_keeper::self_check() const {
  if (auto wrong = book_.self_check()) return wrong;
  return tiers_.cache().self_check();
}

}  // namespace skein::persistence
