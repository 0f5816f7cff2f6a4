#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace skein::storage {

/// Memory for records that is used again: fresh memory of that size costs more than what is done with it (a fault a
/// page, measured with session_storage_bench). Keeps at most `kept_max` buffers between uses. Thread safe.
class scratch {
 public:
  static constexpr std::size_t kept_max = 2;

  /// A buffer with anything in it; its owner gives it back by itself.
  [[nodiscard]] auto lend() {
    const auto give_back = [this](std::string* buffer) {
      const std::unique_ptr<std::string> owned(buffer);
      const std::lock_guard entered(mutex_);
      if (free_.size() < kept_max) free_.push_back(std::move(*owned));
    };
    return std::unique_ptr<std::string, decltype(give_back)>(new std::string(take()), give_back);
  }

 private:
  std::string take() {
    const std::lock_guard entered(mutex_);
    if (free_.empty()) return {};
    std::string buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }

  std::mutex mutex_;
  std::vector<std::string> free_;
};

}  // namespace skein::storage
