#pragma once
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "actors/device/device_mailbox.hpp"
#include "actors/persistence/shared/persistence_mailbox.hpp"

namespace skein::supervisor {

/// Sends states from the devices to the persistence actor. If its mailbox is full including its reserve, the state is
/// lost and its tokens must be fed again. Losses and changes of kept slots are reported as soon as there is room.
/// Thread safe.
class state_carrier final : public device::state_sink {
 public:
  explicit state_carrier(persistence::mailbox& to) : to_(to) {}

  void state_kept(const device::state_key& key, device::state_buffer state) override {
    const std::lock_guard lock(mutex_);
    if (!to_.push_urgent(persistence::state_kept{key, std::move(state)})) lost_.push_back(key);
    send();
  }
  void slot_kept(const device::state_key& key, device_id device) override { tell({key, device}, true); }
  void slot_dropped(const device::state_key& key, device_id device) override { tell({key, device}, false); }

  /// Retries messages that did not fit into the mailbox; called about once a second.
  void repeat() {
    const std::lock_guard lock(mutex_);
    send();
  }

 private:
  using kept_state = std::pair<device::state_key, device_id>;

  /// An update that cancels an unsent one removes both, so the number of unsent updates is bounded by the number of
  /// slots.
  void tell(const kept_state& what, bool kept) {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = untold_.try_emplace(what, kept);
    if (!is_new && at->second != kept) untold_.erase(at);
    send();
  }
  void send() {
    const auto taken = [this](persistence::message_in m) { return to_.push_urgent(std::move(m)) || to_.closed(); };
    while (!lost_.empty() && taken(persistence::state_kept{lost_.front(), nullptr})) lost_.pop_front();
    while (!untold_.empty() && taken(as_message(*untold_.begin()))) untold_.erase(untold_.begin());
  }
  static persistence::message_in as_message(const std::pair<const kept_state, bool>& news) {
    const auto& [key, device] = news.first;
    if (news.second) return persistence::slot_kept{key, device};
    return persistence::slot_dropped{key, device};
  }

  persistence::mailbox& to_;
  std::mutex mutex_;
  std::deque<device::state_key> lost_;
  std::map<kept_state, bool> untold_;  // true: kept
};

}  // namespace skein::supervisor
