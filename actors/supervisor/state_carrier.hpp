#pragma once
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "actors/device/device_mailbox.hpp"
#include "actors/persistence/persistence_mailbox.hpp"

namespace skein::supervisor {

/// Brings states from the devices to the persistence actor. Where its mailbox is full beyond all reserve, a state is
/// lost, which costs feeding its tokens again. That it is, and which slots hold states, is told as soon as there is
/// room. Thread safe.
class state_carrier final : public device::state_sink {
 public:
  explicit state_carrier(persistence::mailbox& to) : to_(to) {}

  void state_kept(const device::state_key& key, device::state_buffer state) override {
    const std::lock_guard lock(mutex_);
    if (!to_.push_urgent(persistence::state_kept{key, std::move(state)})) lost_.push_back(key);
    send();
  }
  void slot_kept(const device::state_key& key) override { tell(key, true); }
  void slot_dropped(const device::state_key& key) override { tell(key, false); }

  /// Tells what the mailbox had no room for; about once a second.
  void repeat() {
    const std::lock_guard lock(mutex_);
    send();
  }

 private:
  /// A slot's news that cancels news which was not told needs not be told either: so what waits is bounded by the
  /// slots.
  void tell(const device::state_key& key, bool kept) {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = untold_.try_emplace(key, kept);
    if (!is_new && at->second != kept) untold_.erase(at);
    send();
  }
  void send() {
    const auto taken = [this](persistence::message_in m) { return to_.push_urgent(std::move(m)) || to_.closed(); };
    while (!lost_.empty() && taken(persistence::state_kept{lost_.front(), nullptr})) lost_.pop_front();
    while (!untold_.empty() && taken(as_message(*untold_.begin()))) untold_.erase(untold_.begin());
  }
  static persistence::message_in as_message(const std::pair<const device::state_key, bool>& news) {
    if (news.second) return persistence::slot_kept{news.first};
    return persistence::slot_dropped{news.first};
  }

  persistence::mailbox& to_;
  std::mutex mutex_;
  std::deque<device::state_key> lost_;
  std::map<device::state_key, bool> untold_;  // true: kept
};

}  // namespace skein::supervisor
