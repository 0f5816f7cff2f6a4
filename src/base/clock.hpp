#pragma once
#include <chrono>

namespace skein {

using steady_time = std::chrono::steady_clock::time_point;
using duration = std::chrono::steady_clock::duration;

/// Where logic gets its time from, so that tests can turn the hands. Thread safe.
class clock {
 public:
  virtual ~clock() = default;
  [[nodiscard]] virtual steady_time now() const = 0;
};

/// The machine's monotonic clock.
[[nodiscard]] const clock& real_clock();

/// A clock that moves only when told to; for tests on one thread.
class fake_clock final : public clock {
 public:
  [[nodiscard]] steady_time now() const override { return now_; }
  void advance(duration by) { now_ += by; }

 private:
  steady_time now_{std::chrono::hours(1)};
};

}  // namespace skein
