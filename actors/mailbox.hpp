#pragma once
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace skein {

/// The bounded queue in front of an actor: many senders, one receiver. A full mailbox is an answer to the sender, never
/// a longer queue; urgent messages (cancel, shutdown) keep room of their own.
template <typename Message>
class bounded_mailbox {
 public:
  /// `urgent_room` messages fit on top of `capacity` when sent with push_urgent.
  bounded_mailbox(std::size_t capacity, std::size_t urgent_room) : capacity_(capacity), urgent_room_(urgent_room) {}

  /// Called once after each push that finds the mailbox empty, outside the lock; for receivers that do not wait here
  /// (an io thread posts a drain to itself). Set before the first push.
  void on_first_message(std::function<void()> wake) { wake_ = std::move(wake); }

  /// False when full or closed; the message is then untouched.
  [[nodiscard]] bool push(Message& message) { return push_below(message, capacity_); }
  [[nodiscard]] bool push(Message&& message) { return push_below(message, capacity_); }
  [[nodiscard]] bool push_urgent(Message&& message) { return push_below(message, capacity_ + urgent_room_); }

  /// Moves everything out, in order, without waiting. `out` keeps its capacity between calls. Without memory for it
  /// this throws, and everything stays inside.
  void drain(std::vector<Message>& out) {
    out.clear();
    const std::lock_guard lock(mutex_);
    move_to(out);
  }

  /// As drain, but sleeps until a message comes, the mailbox closes or the time is over.
  template <typename Clock, typename Duration>
  void wait_and_drain(std::vector<Message>& out, std::chrono::time_point<Clock, Duration> until) {
    out.clear();
    std::unique_lock lock(mutex_);
    arrived_.wait_until(lock, until, [this] { return !queue_.empty() || closed_; });
    move_to(out);
  }

  /// No message is taken from now on; those inside can still be drained.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    arrived_.notify_all();
  }

  [[nodiscard]] bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return queue_.size();
  }

 private:
  void move_to(std::vector<Message>& out) {
    out.reserve(queue_.size());
    for (auto& m : queue_) out.push_back(std::move(m));
    queue_.clear();
  }

  bool push_below(Message& message, std::size_t ceiling) {
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || queue_.size() >= ceiling) return false;
      first = queue_.empty();
      queue_.push_back(std::move(message));
    }
    arrived_.notify_one();
    if (first && wake_) wake_();
    return true;
  }

  const std::size_t capacity_;
  const std::size_t urgent_room_;
  std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Message> queue_;
  bool closed_ = false;
};

}  // namespace skein
