#include "actors/persistence/keeper/session_aging.hpp"

#include <chrono>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/log/log.hpp"

namespace skein::persistence {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t age_page = 200;                       // sessions whose age is checked in one tick
constexpr std::uint64_t age_bytes = 16u << 20;                // log bytes of expired sessions loaded in one tick
constexpr auto clock_slack = std::chrono::milliseconds(60s);  // drift between wall and steady clock from check to check
constexpr auto clock_patience = 1h;

}  // namespace

void session_aging::begin_check(steady_time now) {
  if (age_max_ms_ > 0 && clock_is_sound(now)) at_.emplace(session_key{tenant_id(), {}});
}

/// After a jump of the wall clock, waits for clock_patience before trusting it: removals cannot be undone.
bool session_aging::clock_is_sound(steady_time now) {
  const std::int64_t ms = ports_.wall();
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(now - last_look_.at).count();
  const std::int64_t off = ms - (last_look_.ms + passed);
  if (last_look_.ms != 0 && std::abs(off) > clock_slack.count()) clock_sound_from_ = now + clock_patience;
  last_look_ = {now, ms};
  return now >= clock_sound_from_;
}

/// Removes some of the sessions that were unused for too long, starting where the last call stopped.
void session_aging::step() {
  if (!at_) return;
  const std::int64_t oldest = ports_.wall() - age_max_ms_;
  std::vector<session_key> gone;
  std::uint32_t left = age_page;
  std::uint64_t bytes = 0;
  const auto& tenants = sessions_.tenants();
  while (at_ && left > 0 && bytes < age_bytes) {
    const auto tenant = tenants.lower_bound(at_->tenant);
    if (tenant == tenants.end() || log_.failing()) {
      at_.reset();
      break;
    }
    if (*tenant != at_->tenant) at_ = session_key{*tenant, {}};
    const auto page = sessions_.all(*tenant, at_->id, left);
    if (!page) return at_.reset();
    left -= static_cast<std::uint32_t>(page->size());
    if (page->empty()) at_ = session_key{*tenant + '\0', {}};  // the next one
    for (auto record = page->begin(); record != page->end() && bytes < age_bytes; ++record) {
      at_ = record->key;
      if (record->used_ms > oldest) continue;
      bytes += record->log_bytes;  // the session is loaded to be removed
      const auto entry = sessions_.entry_of(record->key);
      if (entry && (*entry)->tree && !(*entry)->needed()) gone.push_back(record->key);
    }
  }
  if (gone.empty()) return;
  log::info("expired sessions are removed", {{"sessions", static_cast<std::uint64_t>(gone.size())}});
  removals_.expire(std::move(gone));
}

}  // namespace skein::persistence
