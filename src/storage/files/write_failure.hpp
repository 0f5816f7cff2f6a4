#pragma once
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include <rocksdb/status.h>

#include "base/error.hpp"
#include "base/result.hpp"

namespace skein::storage {

/// Whether writing to a database fails. Begins with the first write that failed and ends when the database was opened
/// again. Thread safe.
class write_failure {
 public:
  explicit write_failure(std::string directory) : directory_(std::move(directory)) {}

  [[nodiscard]] bool is_on() const { return on_; }
  /// The cause; only while it is on.
  [[nodiscard]] error why() const;
  /// Logged, unless it is on already.
  void begin(const rocksdb::Status& cause);
  void end() { on_ = false; }
  /// After end(): it was not over. The cause is the latest one.
  void resume() { on_ = true; }
  /// Passes on the outcome of a write, and begins if it failed.
  [[nodiscard]] result<void> noted(const rocksdb::Status& outcome, std::string_view doing);

 private:
  const std::string directory_;
  std::atomic<bool> on_{false};
  mutable std::mutex mutex_;  ///< guards why_
  error why_;
};

}  // namespace skein::storage
