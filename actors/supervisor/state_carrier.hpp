#pragma once
#include <utility>

#include "actors/device/device_mailbox.hpp"
#include "actors/persistence/persistence_mailbox.hpp"

namespace skein::supervisor {

/// Brings states from the device to the persistence actor. Where its mailbox is full beyond all reserve, a state is
/// lost, which costs feeding its tokens again.
class state_carrier final : public device::state_sink {
 public:
  explicit state_carrier(persistence::mailbox& to) : to_(to) {}

  void state_kept(const device::state_key& key, device::state_buffer state) override {
    (void)to_.push_urgent(persistence::state_kept{key, std::move(state)});
  }
  void slot_kept(const device::state_key& key) override { (void)to_.push_urgent(persistence::slot_kept{key}); }
  void slot_dropped(const device::state_key& key) override { (void)to_.push_urgent(persistence::slot_dropped{key}); }

 private:
  persistence::mailbox& to_;
};

}  // namespace skein::supervisor
