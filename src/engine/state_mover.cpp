#include "engine/state_mover.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>

#include "base/check.hpp"

namespace skein::engine {

namespace {

/// Fresh memory is mapped page by page, which takes many times as long as the copy. Large pages avoid that where the
/// system has them.
void ask_for_large_pages(const std::vector<float>& memory) {
  constexpr std::size_t worth_it = std::size_t{4} << 20;
  if (memory.capacity() * sizeof(float) < worth_it) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t begin = first / page * page, end = first + memory.capacity() * sizeof(float);
  static_cast<void>(madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE));  // advisory
}

}  // namespace

state_mover::state_mover(unsigned threads) {
  check(threads > 0 && threads <= threads_max);
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

unsigned state_mover::usual_threads() { return std::clamp(std::thread::hardware_concurrency() / 2, 1u, threads_max); }

state_mover::~state_mover() {
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
    std::ranges::copy(j.from, j.to.begin());
    return;
  }
  try {
    j.grown->reserve(j.from.size());
    ask_for_large_pages(*j.grown);
    j.grown->assign(j.from.begin(), j.from.end());
  } catch (const std::bad_alloc&) {
    j.grown->clear();
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
