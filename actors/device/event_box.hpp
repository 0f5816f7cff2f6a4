#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "actors/device/device_mailbox.hpp"

namespace skein::device {

/// Events to be sent, by io thread.
class event_box {
 public:
  /// Call once before adding events for this io thread.
  void prepare(std::uint32_t io_thread) {
    if (io_thread >= by_thread_.size()) by_thread_.resize(io_thread + 1);
  }
  void add(std::uint32_t io_thread, event e) { by_thread_[io_thread].items.push_back(std::move(e)); }

  /// Calls deliver(io thread, events&&) for each io thread with events, and discards them. Memory left in the events is
  /// reused. If deliver throws, the events that it did not take are delivered by the next call.
  template <typename Deliver>
  void hand_out(Deliver deliver) {
    for (std::uint32_t i = 0; i < by_thread_.size(); ++i) {
      if (by_thread_[i].items.empty()) continue;
      deliver(i, std::move(by_thread_[i]));
      by_thread_[i].items.clear();
    }
  }

 private:
  std::vector<events> by_thread_;
};

}  // namespace skein::device
