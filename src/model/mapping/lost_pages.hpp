#pragma once
#include <cstddef>
#include <span>

/// Access to a page of a mapped file that the file does not have any more, because it was truncated, or that cannot be
/// read raises SIGBUS. A handler puts zeros in place of such pages, so that the process lives and the reader can return
/// an error.
namespace skein::model {

/// Guards one mapping as long as it lives. Other SIGBUS are left to the handler that was there before, or end the
/// process. The handler is installed with the first guard, and again if it was replaced.
class lost_pages_guard {
 public:
  explicit lost_pages_guard(std::span<const std::byte> mapping);
  lost_pages_guard(lost_pages_guard&& other) noexcept;
  lost_pages_guard& operator=(lost_pages_guard&& other) noexcept;
  lost_pages_guard(const lost_pages_guard&) = delete;  // one guard for a mapping
  lost_pages_guard& operator=(const lost_pages_guard&) = delete;
  ~lost_pages_guard();
  /// Before the memory is unmapped.
  void release();

  /// Whether a page was lost: from there on, all bytes that were not in memory are zeros.
  [[nodiscard]] bool lost() const;

  struct entry;

 private:
  entry* entry_;  ///< nullptr: moved from
};

}  // namespace skein::model
