#include "engine/state_mover.hpp"

#include <algorithm>

namespace skein::engine {

state_mover::state_mover() : thread_([this] { work(); }) {}

state_mover::~state_mover() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  job_arrived_.notify_one();
  thread_.join();
}

void state_mover::wait(std::uint64_t copy) {
  std::unique_lock lock(mutex_);
  job_done_.wait(lock, [&] { return done_ >= copy; });
}

bool state_mover::made(std::uint64_t copy) {
  const std::lock_guard lock(mutex_);
  return done_ >= copy;
}

std::uint64_t state_mover::post(const job& j) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(j);
    number = ++posted_;
  }
  job_arrived_.notify_one();
  return number;
}

void state_mover::work() {
  while (true) {
    job next;
    {
      std::unique_lock lock(mutex_);
      job_arrived_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      next = jobs_.front();
      jobs_.pop_front();
    }
    if (next.grown)
      next.grown->assign(next.from.begin(), next.from.end());
    else
      std::ranges::copy(next.from, next.to.begin());
    {
      const std::lock_guard lock(mutex_);
      ++done_;
    }
    job_done_.notify_all();
  }
}

}  // namespace skein::engine
