#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "actors/device/device_mailbox.hpp"

namespace skein::request {

/// Carries device events to io threads. Each io thread has one mailbox; the device thread puts a tick's events into it
/// and wakes the io thread if it was empty. An io thread that is behind by more than `events_max` events counts as
/// congested: the scheduler then plans no tokens for it, so its mailbox is bounded by `events_max` plus one tick.
class event_router final : public device::event_sink {
 public:
  /// `wake(i)` makes io thread i call take(i) soon; called on the device thread, which holds the lock of take(i).
  event_router(std::uint32_t io_threads, std::size_t events_max, std::function<void(std::uint32_t)> wake);

  void deliver(std::uint32_t to, device::events&& batch) override;
  void congestion(std::vector<std::uint8_t>& by_io_thread) const override;

  /// All events for io thread `index` since the last call; called on that thread.
  [[nodiscard]] std::vector<device::event> take(std::uint32_t index);
  /// Returns the vector from take(), whose memory later ticks use again.
  void give_back(std::uint32_t index, std::vector<device::event> taken);

 private:
  struct box {
    mutable std::mutex mutex;
    std::vector<device::event> items;
    std::vector<device::event> spare;  // empty, with memory
  };
  std::vector<std::unique_ptr<box>> boxes_;
  std::size_t events_max_;
  std::function<void(std::uint32_t)> wake_;
};

}  // namespace skein::request
