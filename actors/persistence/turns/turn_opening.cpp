#include "actors/persistence/turns/turn_opening.hpp"

#include <algorithm>
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
  const auto& broken = w.opening->unfinished;
  const version_id ahead = broken && broken->unfinished ? broken->id : storage::beginning;
  const auto path = entry.tree->path(ahead != storage::beginning ? ahead : w.base);
  for (auto at = path.rbegin(); at != path.rend(); ++at) {
    const version_record& v = **at;
    if (const auto key = states_.state_of(entry.uid, v.id)) {
      if (auto state = cache.lend(*key, ports_.wall())) {
        if (v.id == ahead && lacking(v, *key) == 0) continue;  // a token must be fed to sample the next one
        return give_state(entry, w, &v, *key, std::move(state));
      }
      w.awaits = *key;
      w.patience = steady_time::max();
      tiers_.move(log_.disk_works(), false);                   // makes room if possible
      if (!tiers_.load(*key)) w.patience = ports_.time.now();  // retry soon
      return;
    }
    if (const auto key = states_.expected_of(entry, v.id)) {
      w.awaits = *key;
      w.patience = ports_.time.now() + device_patience;
      return;
    }
  }
  give_state(entry, w, nullptr, {}, nullptr);
}

/// The number of tokens at the end of a version that its state, which is in RAM, has not processed.
std::uint64_t turn_opening::lacking(const version_record& v, const state_key& key) const {
  const std::uint64_t lacks = v.total_tokens - std::min(v.total_tokens, tiers_.cache().label_of(key).tokens);
  return lacks <= v.tokens.size() ? lacks : 0;
}

/// `from`: the version of the state; null: the beginning.
void turn_opening::give_state(const open_entry& entry, running_writer& w, const version_record* from,
                              const state_key& key, state_buffer state) {
  check(w.opening.has_value(), "a turn is opened once");
  resume_point& resume = w.opening->resume;
  resume.key = key;
  resume.state = std::move(state);
  resume.device = tiers_.cache().device_of(key);
  const std::uint64_t lacks = from ? lacking(*from, key) : 0;
  const std::uint64_t processed = from ? from->total_tokens - lacks : 0;
  if (from && from->id > w.base) {
    resume.cached_tokens = entry.tree->total_tokens(w.base);
    resume.ahead = processed - resume.cached_tokens;
  } else {
    const version_id since = from ? from->id : storage::beginning;
    resume.cached_tokens = processed;
    if (lacks > 0) {
      resume.feed.assign(from->tokens.end() - static_cast<std::ptrdiff_t>(lacks), from->tokens.end());
      resume.parts.push_back({static_cast<std::uint32_t>(lacks), true});
    }
    const auto rest = entry.tree->tokens_between(since, w.base);
    const auto parts = entry.tree->parts_between(since, w.base);
    resume.feed.insert(resume.feed.end(), rest.begin(), rest.end());
    resume.parts.insert(resume.parts.end(), parts.begin(), parts.end());
  }
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
