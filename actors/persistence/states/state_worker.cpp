#include "actors/persistence/states/state_worker.hpp"

#include <pthread.h>

#include <chrono>
#include <exception>
#include <utility>

#include "base/log/log.hpp"
#include "base/threads/start_thread.hpp"

namespace skein::persistence {
namespace {

// Pause before retrying to wake an owner that could not be woken for lack of memory.
constexpr auto wake_pause = std::chrono::milliseconds(10);

}  // namespace

state_worker::state_worker(const char* name, std::function<void()> wake) : wake_(std::move(wake)) {
  thread_ = start_thread(std::string("the thread \"") + name + '"', [this] { work(); });
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
  std::list<task> one;
  one.push_back({std::move(work), {}});
  one.back().after.emplace_back();
  {
    const std::lock_guard lock(mutex_);
    queue_.splice(queue_.end(), one);
  }
  arrived_.notify_one();
}

std::list<aftermath> state_worker::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(done_, {});
}

/// False: the job has no aftermath.
bool state_worker::perform(task& now) noexcept {
  const auto say = [](const char* why) {
    try {
      log::error("a job of the state worker failed", {{"why", why}});
    } catch (const std::exception&) {
      // Out of memory even for the log.
    }
  };
  bool well = false;
  try {
    now.after.front() = now.work();
    well = true;
  } catch (const std::exception& trouble) {
    say(trouble.what());
  }
  now.work = nullptr;  // releases its captures before the owner sees the result
  return well;
}

bool state_worker::wake_owner() noexcept {
  try {
    wake_();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void state_worker::work() {
  bool owner_knows = true;
  for (;;) {
    std::list<task> now;
    {
      std::unique_lock lock(mutex_);
      const auto ready = [this] { return stopping_ || !queue_.empty(); };
      owner_knows ? arrived_.wait(lock, ready) : (void)arrived_.wait_for(lock, wake_pause, ready);
      if (stopping_) return;
      if (!queue_.empty()) now.splice(now.begin(), queue_, queue_.begin());
    }
    if (!now.empty() && perform(now.front())) {
      const std::lock_guard lock(mutex_);
      done_.splice(done_.end(), now.front().after);
    }
    owner_knows = wake_owner();
  }
}

}  // namespace skein::persistence
