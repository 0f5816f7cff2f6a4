#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace skein::engine {

/// A thread that copies states within host memory, so that who drives a device does not. Copies are made in order. The
/// destructor makes those that wait first.
class state_mover {
 public:
  state_mover();
  ~state_mover();
  state_mover(const state_mover&) = delete;  // a copy would need a second thread
  state_mover& operator=(const state_mover&) = delete;

  /// Both stay alive and untouched until the copy is made. With `grown`, `to` is not used: the vector takes the size of
  /// `from` first. Returns the copy's number.
  std::uint64_t copy(std::span<const float> from, std::span<float> to) { return post({from, to, nullptr}); }
  std::uint64_t copy(std::span<const float> from, std::vector<float>& grown) { return post({from, {}, &grown}); }
  /// Waits until that copy is made.
  void wait(std::uint64_t copy);
  [[nodiscard]] bool made(std::uint64_t copy);

 private:
  struct job {
    std::span<const float> from;
    std::span<float> to;
    std::vector<float>* grown;
  };
  std::uint64_t post(const job& j);
  void work();

  std::mutex mutex_;
  std::condition_variable job_arrived_, job_done_;
  std::deque<job> jobs_;
  std::uint64_t posted_ = 0, done_ = 0;
  bool stopping_ = false;
  std::thread thread_;  // last: everything it uses lives longer
};

}  // namespace skein::engine
