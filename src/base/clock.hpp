#pragma once
#include <chrono>

namespace skein {

using steady_time = std::chrono::steady_clock::time_point;
using duration = std::chrono::steady_clock::duration;

/// The source of time for all logic, so that tests can control it. Thread safe.
class clock {
 public:
  virtual ~clock() = default;
  [[nodiscard]] virtual steady_time now() const = 0;
};

/// The machine's monotonic clock.
[[nodiscard]] const clock& real_clock();

/// A clock that moves only by `advance`; for single-threaded tests.
class fake_clock final : public clock {
 public:
  [[nodiscard]] steady_time now() const override { return now_; }
  void advance(duration by) { now_ += by; }

 private:
  steady_time now_{std::chrono::hours(1)};
};

}  // namespace skein
