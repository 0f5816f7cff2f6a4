#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

namespace boost::asio {
class thread_pool;
}

namespace skein::supervisor {

/// One thread for work that is too long for an io thread. Bounded: work beyond the limit is refused. Owners take turns,
/// so that the work of one does not delay that of others by more than the piece that runs.
class worker_pool {
 public:
  using owner = std::shared_ptr<const void>;

  explicit worker_pool(std::size_t queue_max);
  ~worker_pool();
  worker_pool(const worker_pool&) = delete;  // owns a thread
  worker_pool& operator=(const worker_pool&) = delete;

  /// `whose`: who the work is for, known by its address; may be null. False if queue_max pieces of work are waiting or
  /// running, or a quarter of that are waiting for this owner, or the pool was stopped. Thread safe.
  [[nodiscard]] bool run(const owner& whose, std::function<void()> work);
  /// Lets the running piece finish, drops queued ones, and ends the thread. May be repeated.
  void stop();

 private:
  struct queue {
    owner whose;
    std::deque<std::function<void()>> work;  ///< not empty
  };

  void run_next();
  [[nodiscard]] std::function<void()> take_next();
  /// The queue of an owner, at the end of the turns if it is new.
  queue& queue_of(const owner& whose);

  const std::size_t queue_max_, own_max_;
  std::mutex mutex_;
  std::list<queue> turns_;
  std::size_t pending_ = 0;
  bool stopped_ = false;
  std::unique_ptr<boost::asio::thread_pool> pool_;
};

}  // namespace skein::supervisor
