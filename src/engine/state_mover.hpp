#pragma once
#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace skein::engine {

/// Threads that copy states within host memory, so that who drives a device does not; what takes time is memory that
/// was never touched before. A copy counts as made when those before it are. The destructor makes those that wait
/// first.
class state_mover {
 public:
  static constexpr unsigned threads_max = 8;
  static unsigned usual_threads();  ///< for this machine
  explicit state_mover(unsigned threads = usual_threads());
  ~state_mover();
  state_mover(const state_mover&) = delete;  // a copy would need threads of its own
  state_mover& operator=(const state_mover&) = delete;

  /// Both stay alive and untouched until the copy is made. With `grown`, `to` is not used: the vector takes the size of
  /// `from` first, and stays empty where there is no memory for it. Returns the copy's number.
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
  static void make(const job& j);
  void work();

  std::mutex mutex_;
  std::condition_variable job_arrived_, job_done_;
  std::deque<job> jobs_;
  std::uint64_t posted_ = 0, taken_ = 0, done_ = 0;
  std::array<bool, threads_max + 1> made_ahead_{};  // of numbers after done_, at number modulo size
  bool stopping_ = false;
  std::vector<std::thread> threads_;  // last: everything they use lives longer
};

}  // namespace skein::engine
