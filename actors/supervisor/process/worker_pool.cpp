#include "actors/supervisor/process/worker_pool.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/system/system_error.hpp>
#include <exception>
#include <utility>

#include "base/log/log.hpp"
#include "base/threads/start_thread.hpp"

namespace skein::supervisor {

worker_pool::worker_pool(std::size_t queue_max)
    : queue_max_(queue_max), own_max_(std::max<std::size_t>(1, queue_max / 4)) {
  try {
    pool_ = std::make_unique<boost::asio::thread_pool>(1);
  } catch (const boost::system::system_error& refused) {
    throw no_thread("the worker thread", refused.code().message());
  }
}

worker_pool::~worker_pool() { stop(); }

worker_pool::queue& worker_pool::queue_of(const owner& whose) {
  const auto known = std::ranges::find(turns_, whose, &queue::whose);
  return known != turns_.end() ? *known : turns_.emplace_back(whose);
}

bool worker_pool::run(const owner& whose, std::function<void()> work) {
  const std::lock_guard hold(mutex_);
  if (stopped_ || pending_ >= queue_max_) return false;
  queue& own = queue_of(whose);
  if (own.work.size() >= own_max_) return false;
  try {
    own.work.push_back(nullptr);
    boost::asio::post(*pool_, [this] { run_next(); });
  } catch (...) {  // no memory
    if (!own.work.empty() && !own.work.back()) own.work.pop_back();
    if (own.work.empty()) turns_.remove_if([&](const queue& q) { return &q == &own; });
    throw;
  }
  own.work.back() = std::move(work);
  ++pending_;
  return true;
}

std::function<void()> worker_pool::take_next() {
  const std::lock_guard hold(mutex_);
  if (turns_.empty()) return nullptr;  // stopped
  queue& first = turns_.front();
  auto work = std::move(first.work.front());
  first.work.pop_front();
  if (first.work.empty())
    turns_.pop_front();
  else
    turns_.splice(turns_.end(), turns_, turns_.begin());
  return work;
}

void worker_pool::run_next() {
  if (auto work = take_next()) {
    try {
      work();
    } catch (const std::exception& trouble) {
      log::error("work in the worker pool failed", {{"why", trouble.what()}});
    }
  }
  const std::lock_guard hold(mutex_);
  if (pending_ > 0) --pending_;
}

void worker_pool::stop() {
  std::list<queue> dropped;
  pool_->stop();
  {
    const std::lock_guard hold(mutex_);
    stopped_ = true;
    dropped.swap(turns_);
  }
  pool_->join();
}

}  // namespace skein::supervisor
