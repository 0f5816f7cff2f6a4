#pragma once
#include <atomic>
#include <memory>

namespace skein {

/// A flag shared by all copies. Thread safe.
class shared_flag {
 public:
  operator bool() const { return *value_; }  // NOLINT: implicit, so that it reads like a bool
  shared_flag& operator=(bool value) {
    *value_ = value;
    return *this;
  }
  bool exchange(bool value) { return value_->exchange(value); }

 private:
  std::shared_ptr<std::atomic<bool>> value_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace skein
