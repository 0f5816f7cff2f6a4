#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace skein::storage {

/// A pool of reusable buffers for records: fresh memory of that size costs more than the work on it (one page fault per
/// page, measured with session_storage_bench). Keeps at most `kept_max` buffers between uses. Thread safe.
class scratch {
 public:
  static constexpr std::size_t kept_max = 2;

  /// A buffer with unspecified contents; the returned pointer gives it back when destroyed.
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
