#include "kernels/cpu/thread_pool.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "base/threads/start_thread.hpp"

namespace skein::kernels::cpu {

namespace {

constexpr int spins_before_sleep = 2000;  // a pause is 10-40 ns: long enough to bridge the serial parts of a tick
constexpr int spins_before_yield = 4000;  // only reached when a worker was suspended inside a task

void pause() {
#if defined(__SSE2__)
  _mm_pause();
#endif
}

/// Sets flush-to-zero and denormals-are-zero for its lifetime. On other CPUs than x86 denormals cost nothing.
class denormals_off {
 public:
#if defined(__SSE2__)
  denormals_off() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040u); }
  ~denormals_off() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#else
  denormals_off() = default;
  ~denormals_off() {}

 private:
#endif
  denormals_off(const denormals_off&) = delete;  // restores the previous mode once
  denormals_off& operator=(const denormals_off&) = delete;
};

std::uint32_t phase_of(std::uint64_t claim) { return static_cast<std::uint32_t>(claim >> 32); }

}  // namespace

std::uint32_t thread_pool::planned_threads(std::uint32_t threads) {
  return threads > 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
}

thread_pool::thread_pool(std::uint32_t threads) {
  const std::uint32_t wanted = planned_threads(threads);
  workers_.reserve(wanted - 1);
  try {
    for (std::uint32_t i = 1; i < wanted; ++i)
      workers_.push_back(
          start_thread("thread " + std::to_string(i + 1) + " of " + std::to_string(wanted), [this, i] { work(i); }));
  } catch (...) {
    stop();
    throw;
  }
}

thread_pool::~thread_pool() { stop(); }

void thread_pool::stop() {
  stop_.store(true, std::memory_order_relaxed);
  wake_.fetch_add(1, std::memory_order_release);
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void thread_pool::run_erased(std::size_t tasks, erased_body call, const void* body) {
  if (tasks == 0) return;
  check(tasks <= UINT32_MAX);
  const denormals_off scope;
  if (tasks == 1 || workers_.empty()) {
    for (std::size_t task = 0; task < tasks; ++task) call(body, task, 0);
    return;
  }
  call_ = call;
  body_ = body;
  unfinished_.store(tasks, std::memory_order_relaxed);
  const std::uint32_t phase = wake_.load(std::memory_order_relaxed) + 1;
  claim_.store(static_cast<std::uint64_t>(phase) << 32 | tasks, std::memory_order_release);
  wake_.store(phase, std::memory_order_release);
  wake_.notify_all();
  take_tasks(phase, 0);
  for (int spins = 0; unfinished_.load(std::memory_order_acquire) > 0; ++spins) {
    if (spins < spins_before_yield)
      pause();
    else
      std::this_thread::yield();
  }
  if (failed_.exchange(false, std::memory_order_relaxed)) std::rethrow_exception(std::exchange(failure_, nullptr));
}

/// Counts the task as done even if it throws, because the caller waits for all tasks.
void thread_pool::run_task(std::uint32_t task, std::uint32_t thread) noexcept {
  try {
    call_(body_, task, thread);
  } catch (...) {
    if (!failed_.exchange(true, std::memory_order_relaxed)) failure_ = std::current_exception();
  }
  unfinished_.fetch_sub(1, std::memory_order_acq_rel);
}

void thread_pool::take_tasks(std::uint32_t phase, std::uint32_t thread) {
  std::uint64_t claim = claim_.load(std::memory_order_acquire);
  while (phase_of(claim) == phase && static_cast<std::uint32_t>(claim) > 0) {
    if (!claim_.compare_exchange_weak(claim, claim - 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
    // The number of unclaimed tasks is also the task number: tasks are claimed from the last one down.
    run_task(static_cast<std::uint32_t>(claim) - 1, thread);
    claim = claim_.load(std::memory_order_acquire);
  }
}

void thread_pool::work(std::uint32_t thread) {
  const denormals_off scope;
  std::uint32_t seen = 0;
  for (;;) {
    for (int spins = 0; wake_.load(std::memory_order_acquire) == seen && spins < spins_before_sleep; ++spins) pause();
    wake_.wait(seen, std::memory_order_acquire);
    seen = wake_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    take_tasks(seen, thread);
  }
}

}  // namespace skein::kernels::cpu
