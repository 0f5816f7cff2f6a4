#include "engine/state_mover.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "base/threads/start_thread.hpp"

namespace skein::engine {

state_mover::state_mover(unsigned threads) {
  check(threads > 0 && threads <= threads_max);
  threads_.reserve(threads);
  try {
    for (unsigned i = 0; i < threads; ++i)
      threads_.push_back(start_thread(
          "thread " + std::to_string(i + 1) + " of " + std::to_string(threads) + " for the copies of states",
          [this] { work(); }));
  } catch (...) {
    stop();
    throw;
  }
}

unsigned state_mover::usual_threads() { return std::clamp(std::thread::hardware_concurrency() / 2, 1u, threads_max); }

state_mover::~state_mover() { stop(); }

void state_mover::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  job_arrived_.notify_all();
  for (std::thread& thread : threads_) thread.join();
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

void state_mover::make(const job& j) {
  if (!j.grown) {
    copy_state(j.from, j.format, j.to);
    return;
  }
  if (j.grown->format != j.format) j.grown->format = j.format;  // else its owner may read it meanwhile
  try {
    model::reserve_state(j.grown->bytes, j.from.bytes.size());
    j.grown->bytes.assign(j.from.bytes.begin(), j.from.bytes.end());
  } catch (const std::bad_alloc&) {
    j.grown->bytes.clear();
  }
}

void state_mover::work() {
  while (true) {
    job next;
    std::uint64_t number = 0;
    {
      std::unique_lock lock(mutex_);
      // No thread runs further ahead of the slowest than made_ahead_ can record.
      const auto may_take = [&] { return !jobs_.empty() && taken_ - done_ < threads_max; };
      job_arrived_.wait(lock, [&] { return may_take() || (stopping_ && jobs_.empty()); });
      if (jobs_.empty()) return;
      next = jobs_.front();
      jobs_.pop_front();
      number = ++taken_;
    }
    make(next);
    {
      const std::lock_guard lock(mutex_);
      made_ahead_[number % made_ahead_.size()] = true;
      while (std::exchange(made_ahead_[(done_ + 1) % made_ahead_.size()], false)) ++done_;
    }
    job_done_.notify_all();
    job_arrived_.notify_all();
  }
}

}  // namespace skein::engine
