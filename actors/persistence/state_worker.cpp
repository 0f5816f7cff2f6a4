#include "actors/persistence/state_worker.hpp"

#include <pthread.h>

#include <exception>
#include <utility>

#include "base/log.hpp"

namespace skein::persistence {

state_worker::state_worker(const char* name, std::function<void()> wake) : wake_(std::move(wake)) {
  thread_ = std::thread([this] { work(); });
  pthread_setname_np(thread_.native_handle(), name);
}

state_worker::~state_worker() { stop(); }

void state_worker::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void state_worker::run(job work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  arrived_.notify_one();
}

std::vector<aftermath> state_worker::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(done_, {});
}

void state_worker::work() {
  for (;;) {
    job next;
    {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (stopping_) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    aftermath after = [] {};
    try {
      after = next();
    } catch (const std::exception& trouble) {
      log::error("work on states or sessions failed", {{"why", trouble.what()}});
    }
    next = nullptr;  // what it held goes before somebody hears of the result
    {
      const std::lock_guard lock(mutex_);
      done_.push_back(std::move(after));
    }
    wake_();
  }
}

}  // namespace skein::persistence
