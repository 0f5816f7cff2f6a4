#pragma once
#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "model/state_value.hpp"

namespace skein::engine {

/// Threads that copy states within host memory, so that the thread that drives a device does not have to; page faults
/// on fresh memory take most of the time. A copy counts as complete when all earlier ones are. The destructor completes
/// queued copies first.
class state_mover {
 public:
  static constexpr unsigned threads_max = 8;
  static unsigned usual_threads();  ///< default for this machine
  explicit state_mover(unsigned threads = usual_threads());
  ~state_mover();
  state_mover(const state_mover&) = delete;  // owns threads
  state_mover& operator=(const state_mover&) = delete;

  /// Both states stay alive and untouched until the copy is complete. Returns the copy's number.
  ///
  /// Into memory of format.bytes(), converted if `from` has other types.
  std::uint64_t copy(const model::state_view& from, const model::state_format& format, std::span<std::byte> to) {
    return post({from, format, to, nullptr});
  }
  /// Into a value, in the format of `from`. The value grows as needed and becomes empty if that fails to allocate.
  std::uint64_t copy(const model::state_view& from, model::state_value& grown) {
    return post({from, from.format, {}, &grown});
  }
  /// Waits until that copy is complete.
  void wait(std::uint64_t copy);
  [[nodiscard]] bool made(std::uint64_t copy);

 private:
  struct job {
    model::state_view from;
    model::state_format format;
    std::span<std::byte> to;
    model::state_value* grown;
  };
  std::uint64_t post(const job& j);
  static void make(const job& j);
  void work();
  void stop();

  std::mutex mutex_;
  std::condition_variable job_arrived_, job_done_;
  std::deque<job> jobs_;
  std::uint64_t posted_ = 0, taken_ = 0, done_ = 0;
  std::array<bool, threads_max + 1> made_ahead_{};  // copies after done_ that are complete, indexed by number modulo
                                                    // size
  bool stopping_ = false;
  std::vector<std::thread> threads_;  // last member: joined before the members that they use are destroyed
};

}  // namespace skein::engine
