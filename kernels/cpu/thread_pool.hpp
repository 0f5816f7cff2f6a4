#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace skein::kernels::cpu {

/// Persistent threads that run the phases of a stage; run() is one phase, including its barrier.
///
/// Tasks are claimed one by one from a counter, so a core used by another process costs the time of one task, not half
/// of the phase. No result depends on the thread that computes it, because each output belongs to one task. Workers
/// spin for some tens of microseconds after a phase (the next one usually follows at once), then sleep.
///
/// Every thread computes with denormals flushed to zero, the caller only during run(): denormal inputs make a GEMM
/// about ten times slower.
class thread_pool {
 public:
  /// `threads` includes the caller; 0: std::thread::hardware_concurrency(). Throws no_thread.
  explicit thread_pool(std::uint32_t threads);
  /// threads() of a pool constructed with this argument.
  [[nodiscard]] static std::uint32_t planned_threads(std::uint32_t threads);
  ~thread_pool();
  thread_pool(const thread_pool&) = delete;  // its threads use its address
  thread_pool& operator=(const thread_pool&) = delete;

  [[nodiscard]] std::uint32_t threads() const { return static_cast<std::uint32_t>(workers_.size()) + 1; }

  /// Calls body(task, thread) for all tasks 0 .. tasks-1 (fewer than 2^32); `thread` is 0 .. threads()-1, for scratch
  /// memory. Returns when all are done; if tasks threw, rethrows one of the exceptions. One caller at a time; a body
  /// must not call run().
  template <typename Body>
  void run(std::size_t tasks, const Body& body) {
    run_erased(
        tasks,
        [](const void* b, std::size_t task, std::uint32_t thread) { (*static_cast<const Body*>(b))(task, thread); },
        &body);
  }

 private:
  using erased_body = void (*)(const void* body, std::size_t task, std::uint32_t thread);

  void run_erased(std::size_t tasks, erased_body call, const void* body);
  void work(std::uint32_t thread);
  void stop();
  /// Claims and runs tasks of phase `phase` until none is left.
  void take_tasks(std::uint32_t phase, std::uint32_t thread);
  void run_task(std::uint32_t task, std::uint32_t thread) noexcept;

  // Written by the caller before it opens a phase in claim_, read by threads that have claimed a task of that phase.
  // The caller does not return before all claimed tasks are done, so a late worker never sees a half-written phase.
  erased_body call_ = nullptr;
  const void* body_ = nullptr;

  alignas(64) std::atomic<std::uint64_t> claim_{
      0};  ///< phase number in the high half, tasks not yet claimed in the low
  alignas(64) std::atomic<std::uint64_t> unfinished_{0};
  alignas(64) std::atomic<std::uint32_t> wake_{0};  ///< counts phases; sleeping workers wait on it
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};  ///< a task of this phase has thrown
  std::exception_ptr failure_;       ///< its exception; written by the first task to set failed_, read by the caller
  std::vector<std::thread> workers_;
};

}  // namespace skein::kernels::cpu
