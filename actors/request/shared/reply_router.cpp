#include "actors/request/shared/reply_router.hpp"

#include <utility>
#include <variant>

namespace skein::request {

reply_router::reply_router(std::uint32_t io_threads, std::function<void(std::uint32_t)> wake) : wake_(std::move(wake)) {
  for (std::uint32_t i = 0; i < io_threads; ++i) boxes_.push_back(std::make_unique<box>());
}

void reply_router::deliver(persistence::reply&& r) {
  const std::uint32_t to = std::visit([](const auto& one) { return one.reply.io_thread; }, r);
  box& b = *boxes_[to];
  // Everything that may throw for lack of memory happens before the reply is taken.
  const std::lock_guard lock(b.mutex);
  if (b.items.size() == b.items.capacity()) b.items.reserve(2 * b.items.size() + 1);
  if (b.items.empty()) wake_(to);
  b.items.push_back(std::move(r));
}

std::vector<persistence::reply> reply_router::take(std::uint32_t index) {
  box& b = *boxes_[index];
  const std::lock_guard lock(b.mutex);
  return std::exchange(b.items, {});
}

}  // namespace skein::request
