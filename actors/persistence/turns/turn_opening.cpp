#include "actors/persistence/turns/turn_opening.hpp"

#include <atomic>
#include <chrono>
#include <utility>

#include "base/check.hpp"

namespace skein::persistence {
namespace {

// How long a turn waits for a state from the device; after that its tokens are fed again.
constexpr auto device_patience = std::chrono::seconds(10);

}  // namespace

void turn_opening::resolve(open_entry& entry, running_writer& w) {
  auto& cache = tiers_.cache();
  w.awaits = {};
  const auto path = entry.tree->path(w.base);
  for (auto at = path.rbegin(); at != path.rend(); ++at) {
    const version_id version = (*at)->id;
    if (const auto key = states_.state_of(entry.uid, version)) {
      if (auto state = cache.lend(*key, ports_.wall())) return give_state(entry, w, version, *key, std::move(state));
      w.awaits = *key;
      w.patience = steady_time::max();
      tiers_.move(log_.disk_works(), false);                   // makes room if possible
      if (!tiers_.load(*key)) w.patience = ports_.time.now();  // retry soon
      return;
    }
    if (const auto key = states_.expected_of(entry, version)) {
      w.awaits = *key;
      w.patience = ports_.time.now() + device_patience;
      return;
    }
  }
  give_state(entry, w, storage::beginning, {}, nullptr);
}

void turn_opening::give_state(const open_entry& entry, running_writer& w, version_id from, const state_key& key,
                              state_buffer state) {
  check(w.opening.has_value(), "a turn is opened once");
  resume_point& resume = w.opening->resume;
  resume.key = key;
  resume.state = std::move(state);
  resume.device = tiers_.cache().device_of(key);
  resume.feed = entry.tree->tokens_between(from, w.base);
  resume.parts = entry.tree->parts_between(from, w.base);
  resume.cached_tokens = entry.tree->total_tokens(from);
  if (!resume.feed.empty()) {
    counters_.rebuilds.fetch_add(1, std::memory_order_relaxed);
    counters_.rebuilt_tokens.fetch_add(resume.feed.size(), std::memory_order_relaxed);
  }
  w.awaits = {};
  replies_.deliver(std::move(*w.opening));
  w.opening.reset();
}

void turn_opening::resolve_waiting(const state_key& key) {
  for (const lease_id lease : book_.running())
    if (const auto [entry, w] = book_.find_lease(lease); w->opening && w->awaits == key) resolve(*entry, *w);
}

void turn_opening::stop_waiting(open_entry& entry, running_writer& w) {
  states_.stop_expecting(w.awaits);
  resolve(entry, w);
}

}  // namespace skein::persistence
