#pragma once
#include <atomic>
#include <memory>

namespace skein {

/// A flag that all copies of it share. Thread safe.
class shared_flag {
 public:
  operator bool() const { return *value_; }  // NOLINT: it is read like the flag that it is
  shared_flag& operator=(bool value) {
    *value_ = value;
    return *this;
  }
  bool exchange(bool value) { return value_->exchange(value); }

 private:
  std::shared_ptr<std::atomic<bool>> value_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace skein
