#pragma once
#include <cstddef>

namespace skein::test {

/// While it lives, operator new throws std::bad_alloc on this thread when asked for `bytes_min` bytes or more. For
/// programs that link failing_new.cpp.
class failing_new {
 public:
  explicit failing_new(std::size_t bytes_min);
  ~failing_new();
  failing_new(const failing_new&) = delete;  // one at a time
  failing_new& operator=(const failing_new&) = delete;
};

/// The same for all other threads.
class failing_new_elsewhere {
 public:
  explicit failing_new_elsewhere(std::size_t bytes_min);
  ~failing_new_elsewhere();
  failing_new_elsewhere(const failing_new_elsewhere&) = delete;  // one at a time
  failing_new_elsewhere& operator=(const failing_new_elsewhere&) = delete;
};

}  // namespace skein::test
