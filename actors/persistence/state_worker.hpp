#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "base/error.hpp"

namespace skein::persistence {

/// What a job leaves to be done on the persistence thread.
using aftermath = std::function<void()>;
/// Work of some milliseconds and more: reading and writing states, whole sessions as files. Touches nothing of the
/// actor; what it returns does.
using job = std::function<aftermath()>;

/// States and sessions are large; also that there is no memory for one is an answer.
template <typename Work>
auto guarded(error_kind kind, Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& trouble) {
    return error{kind, trouble.what(), ""};
  }
}

/// Runs jobs one after another, in order. What is queued is bounded by those who ask: a write or two of each tier, a
/// load for each turn that is about to be opened, a job for each question.
class job_runner {
 public:
  virtual ~job_runner() = default;
  virtual void run(job work) = 0;
};

/// A thread of its own, so that the log never waits behind a blob. A job that throws leaves nothing to be done. The
/// thread needs no memory but what its jobs take: run() allocates the place of the job and of its aftermath.
class state_worker final : public job_runner {
 public:
  /// `wake` is called on the worker's thread, which has this name, when an aftermath waits.
  state_worker(const char* name, std::function<void()> wake);
  ~state_worker() override;
  state_worker(const state_worker&) = delete;  // owns a thread
  state_worker& operator=(const state_worker&) = delete;

  void run(job work) override;
  /// Waits for the job that runs; the others are dropped. For an owner whose jobs use what goes before this does.
  void stop();
  /// What was done since the last call, in order; for the persistence thread.
  [[nodiscard]] std::list<aftermath> take();

 private:
  /// A job and the place for what it leaves to be done.
  struct task {
    job work;
    std::list<aftermath> after;  // one
  };
  void work();
  [[nodiscard]] static bool perform(task& now) noexcept;
  [[nodiscard]] bool wake_owner() noexcept;

  std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::list<task> queue_;
  std::list<aftermath> done_;
  bool stopping_ = false;
  std::thread thread_;  // last: starts when everything above exists
};

}  // namespace skein::persistence
