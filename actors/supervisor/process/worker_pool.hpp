#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

namespace boost::asio {
class thread_pool;
}

namespace skein::supervisor {

/// One thread for work that is too long for an io thread. Bounded: work beyond the limit is refused.
class worker_pool {
 public:
  explicit worker_pool(std::size_t queue_max);
  ~worker_pool();
  worker_pool(const worker_pool&) = delete;  // owns a thread
  worker_pool& operator=(const worker_pool&) = delete;

  /// False if queue_max pieces of work are waiting or running, or the pool was stopped. Thread safe.
  [[nodiscard]] bool run(std::function<void()> work);
  /// Lets the running piece finish, drops queued ones, and ends the thread. May be repeated.
  void stop();

 private:
  const std::size_t queue_max_;
  std::atomic<std::size_t> pending_{0};
  std::atomic<bool> stopped_{false};
  std::unique_ptr<boost::asio::thread_pool> pool_;
};

}  // namespace skein::supervisor
