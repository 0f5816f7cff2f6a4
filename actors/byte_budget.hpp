#pragma once
#include <atomic>
#include <cstddef>
#include <memory>

namespace skein {

/// Bytes that many hold together, counted against a ceiling. Thread safe.
class byte_budget {
 public:
  /// A part of the budget, given back with its last copy; it may outlive the budget. Null: nothing was given.
  using lease = std::shared_ptr<const void>;

  /// Null where that many more bytes would pass `bytes_max`.
  [[nodiscard]] lease take(std::size_t bytes, std::size_t bytes_max) {
    std::size_t held = held_->load(std::memory_order_relaxed);
    do {
      if (bytes > bytes_max || held > bytes_max - bytes) return nullptr;
    } while (!held_->compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
    return {held_.get(),
            [counter = held_, bytes](const void*) { counter->fetch_sub(bytes, std::memory_order_relaxed); }};
  }

  [[nodiscard]] std::size_t held() const { return held_->load(std::memory_order_relaxed); }

 private:
  const std::shared_ptr<std::atomic<std::size_t>> held_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace skein
