#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace skein::kernels::cpu {

/// Persistent threads that run the phases of a stage; run() is one phase and its barrier.
///
/// Tasks are claimed one by one from a counter, so a core that another process holds costs one task's time and not half
/// of the phase. That is allowed because no result depends on which thread computes it: each output belongs to one
/// task. Workers spin for some ten microseconds after a phase (the next one usually follows at once), then sleep.
///
/// Every thread computes with denormals flushed to zero, the caller during run() only: with denormal inputs a matrix
/// product is some ten times slower.
class thread_pool {
 public:
  /// `threads` counts the caller; 0: as many as the process may use.
  explicit thread_pool(std::uint32_t threads);
  /// How many a pool has that is made so.
  [[nodiscard]] static std::uint32_t planned_threads(std::uint32_t threads);
  ~thread_pool();
  thread_pool(const thread_pool&) = delete;  // owns threads that know its address
  thread_pool& operator=(const thread_pool&) = delete;

  [[nodiscard]] std::uint32_t threads() const { return static_cast<std::uint32_t>(workers_.size()) + 1; }

  /// body(task, thread) for all tasks 0 .. tasks-1 (fewer than 2^32); `thread` is 0 .. threads()-1, for scratch memory.
  /// Returns when all are done; throws then what a task threw (one of them, when several did). One caller at a time; a
  /// body must not call run().
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
  /// Claims and runs tasks of phase `phase` until none is left.
  void take_tasks(std::uint32_t phase, std::uint32_t thread);
  void run_task(std::uint32_t task, std::uint32_t thread) noexcept;

  // Written by the caller before it opens a phase in claim_, read by whoever has claimed a task of that phase. The
  // caller does not return before all claimed tasks are done, so a late worker never sees a half-written phase.
  erased_body call_ = nullptr;
  const void* body_ = nullptr;

  alignas(64) std::atomic<std::uint64_t> claim_{
      0};  ///< phase number in the high half, tasks not yet claimed in the low
  alignas(64) std::atomic<std::uint64_t> unfinished_{0};
  alignas(64) std::atomic<std::uint32_t> wake_{0};  ///< counts phases; what sleeping workers wait on
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};  ///< a task of this phase has thrown
  std::exception_ptr failure_;       ///< what it threw; written by the first to set failed_, read by the caller
  std::vector<std::thread> workers_;
};

}  // namespace skein::kernels::cpu
