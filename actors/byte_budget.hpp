#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace skein {

/// Counts bytes of memory in total and per holder; byte_share sets the limits. Thread safe.
class byte_budget {
 public:
  /// A part of the budget, returned when its last copy is destroyed; may outlive the budget. Null: nothing was granted.
  using lease = std::shared_ptr<const void>;
  /// Bytes that are held now.
  using counter = std::atomic<std::size_t>;

  [[nodiscard]] std::size_t held() const { return all_->load(std::memory_order_relaxed); }

  /// Bytes of all holders, and of the unauthenticated ones among them.
  [[nodiscard]] const std::shared_ptr<counter>& all() const { return all_; }
  [[nodiscard]] const std::shared_ptr<counter>& strangers() const { return strangers_; }
  /// Bytes of the holder of that name; the same counter as long as any copy of the pointer exists.
  [[nodiscard]] std::shared_ptr<counter> of(const std::string& name) {
    const std::lock_guard lock(mutex_);
    forget_unused();
    std::weak_ptr<counter>& place = holders_[name];
    auto found = place.lock();
    if (!found) place = found = std::make_shared<counter>(0);
    return found;
  }

 private:
  /// Scans all holders whenever their number has doubled, so that the cost per holder is constant.
  void forget_unused() {
    if (holders_.size() < 2 * used_ + 64) return;
    std::erase_if(holders_, [](const auto& holder) { return holder.second.expired(); });
    used_ = holders_.size();
  }

  const std::shared_ptr<counter> all_ = std::make_shared<counter>(0);
  const std::shared_ptr<counter> strangers_ = std::make_shared<counter>(0);
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<counter>> holders_;
  std::size_t used_ = 0;  // number of holders after the last scan
};

}  // namespace skein
