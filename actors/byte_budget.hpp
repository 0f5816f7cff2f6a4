#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace skein {

/// Bytes that many hold together, counted against a ceiling, and how many of them each holder has. Thread safe.
class byte_budget {
 public:
  /// A part of the budget, given back with its last copy; it may outlive the budget. Null: nothing was given.
  using lease = std::shared_ptr<const void>;
  /// Bytes that are held now.
  using counter = std::atomic<std::size_t>;

  [[nodiscard]] std::size_t held() const { return all_->load(std::memory_order_relaxed); }

  /// Of all holders together, and of those among them who did not say who they are.
  [[nodiscard]] const std::shared_ptr<counter>& all() const { return all_; }
  [[nodiscard]] const std::shared_ptr<counter>& strangers() const { return strangers_; }
  /// Of the holder with that name: the same one for as long as anybody keeps it.
  [[nodiscard]] std::shared_ptr<counter> of(const std::string& name) {
    const std::lock_guard lock(mutex_);
    forget_unused();
    std::weak_ptr<counter>& place = holders_[name];
    auto found = place.lock();
    if (!found) place = found = std::make_shared<counter>(0);
    return found;
  }

 private:
  /// Looks through all of them when they have doubled, so that a holder costs the same however many there are.
  void forget_unused() {
    if (holders_.size() < 2 * used_ + 64) return;
    std::erase_if(holders_, [](const auto& holder) { return holder.second.expired(); });
    used_ = holders_.size();
  }

  const std::shared_ptr<counter> all_ = std::make_shared<counter>(0);
  const std::shared_ptr<counter> strangers_ = std::make_shared<counter>(0);
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<counter>> holders_;
  std::size_t used_ = 0;  // when they were looked through last
};

}  // namespace skein
