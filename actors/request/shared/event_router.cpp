#include "actors/request/shared/event_router.hpp"

#include <iterator>
#include <utility>

namespace skein::request {

event_router::event_router(std::uint32_t io_threads, std::size_t events_max, std::function<void(std::uint32_t)> wake)
    : events_max_(events_max), wake_(std::move(wake)) {
  for (std::uint32_t i = 0; i < io_threads; ++i) boxes_.push_back(std::make_unique<box>());
}

void event_router::deliver(std::uint32_t to, device::events&& batch) {
  box& b = *boxes_[to];
  // Everything that may throw for lack of memory happens before the events are taken.
  const std::lock_guard lock(b.mutex);
  if (b.items.empty()) {
    wake_(to);
    return b.items.swap(batch.items);
  }
  const std::size_t all = b.items.size() + batch.items.size();
  if (all > b.items.capacity()) b.items.reserve(2 * all);
  b.items.insert(b.items.end(), std::move_iterator(batch.items.begin()), std::move_iterator(batch.items.end()));
}

void event_router::congestion(std::vector<std::uint8_t>& by_io_thread) const {
  by_io_thread.resize(boxes_.size());
  for (std::size_t i = 0; i < boxes_.size(); ++i) {
    const std::lock_guard lock(boxes_[i]->mutex);
    by_io_thread[i] = boxes_[i]->items.size() > events_max_ ? 1 : 0;
  }
}

std::vector<device::event> event_router::take(std::uint32_t index) {
  box& b = *boxes_[index];
  const std::lock_guard lock(b.mutex);
  return std::exchange(b.items, std::exchange(b.spare, {}));
}

void event_router::give_back(std::uint32_t index, std::vector<device::event> taken) {
  taken.clear();
  box& b = *boxes_[index];
  const std::lock_guard lock(b.mutex);
  b.spare = std::move(taken);
}

}  // namespace skein::request
