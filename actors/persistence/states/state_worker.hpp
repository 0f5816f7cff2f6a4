#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "base/error.hpp"

namespace skein::persistence {

/// The part of a job that runs on the persistence thread afterwards.
using aftermath = std::function<void()>;
/// Work that takes milliseconds or more: reading and writing states and session files. It must not access the actor;
/// the aftermath it returns may.
using job = std::function<aftermath()>;

/// Runs `work`; an exception, such as running out of memory for a large state or session, becomes an error.
template <typename Work>
auto guarded(error_kind kind, Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& trouble) {
    return error{kind, trouble.what(), ""};
  }
}

/// Runs jobs one after another, in order. The callers bound the queue: a few writes for each tier, a load for each turn
/// that is being opened, a job for each request.
class job_runner {
 public:
  virtual ~job_runner() = default;
  virtual void run(job work) = 0;
};

/// A job runner with its own thread, so that writing a state never delays the log. A job that throws has no aftermath.
/// The thread itself allocates nothing: run() allocates the memory of the job and of its aftermath.
class state_worker final : public job_runner {
 public:
  /// `wake` is called on the worker's thread, which has this name, when an aftermath is ready.
  state_worker(const char* name, std::function<void()> wake);
  ~state_worker() override;
  state_worker(const state_worker&) = delete;  // owns a thread
  state_worker& operator=(const state_worker&) = delete;

  void run(job work) override;
  /// Waits for the running job and drops the others. For owners with members that jobs use and that are destroyed
  /// first.
  void stop();
  /// The aftermaths of the jobs done since the last call, in order; for the persistence thread.
  [[nodiscard]] std::list<aftermath> take();

 private:
  /// A job and the storage for its aftermath.
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
