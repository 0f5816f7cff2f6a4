#include "actors/supervisor/process/worker_pool.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <exception>
#include <utility>

#include "base/log/log.hpp"

namespace skein::supervisor {

worker_pool::worker_pool(std::size_t queue_max)
    : queue_max_(queue_max), pool_(std::make_unique<boost::asio::thread_pool>(1)) {}

worker_pool::~worker_pool() { stop(); }

bool worker_pool::run(std::function<void()> work) {
  if (stopped_) return false;
  if (pending_.fetch_add(1) >= queue_max_) {
    --pending_;
    return false;
  }
  boost::asio::post(*pool_, [this, work = std::move(work)] {
    try {
      work();
    } catch (const std::exception& trouble) {
      log::error("work in the worker pool failed", {{"why", trouble.what()}});
    }
    --pending_;
  });
  return true;
}

void worker_pool::stop() {
  pool_->stop();
  stopped_ = true;
  pool_->join();
}

}  // namespace skein::supervisor
