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

/// The bounded queue in front of an actor: many senders, one receiver. A full mailbox refuses the message and never
/// grows; urgent messages (cancel, shutdown) have reserved room.
template <typename Message>
class bounded_mailbox {
 public:
  /// push_urgent may exceed `capacity` by `urgent_room` messages.
  bounded_mailbox(std::size_t capacity, std::size_t urgent_room) : capacity_(capacity), urgent_room_(urgent_room) {}

  /// Sets a function that is called outside the lock after each push into an empty mailbox, for receivers that do not
  /// wait here (an io thread posts a drain to itself). Call before the first push.
  void on_first_message(std::function<void()> wake) { wake_ = std::move(wake); }

  /// False if full or closed; the message is then unchanged.
  [[nodiscard]] bool push(Message& message) { return push_below(message, capacity_); }
  [[nodiscard]] bool push(Message&& message) { return push_below(message, capacity_); }
  [[nodiscard]] bool push_urgent(Message&& message) { return push_below(message, capacity_ + urgent_room_); }

  /// Moves all messages out, in order, without waiting. `out` keeps its capacity between calls. If its allocation
  /// throws, all messages stay inside.
  void drain(std::vector<Message>& out) {
    out.clear();
    const std::lock_guard lock(mutex_);
    move_to(out);
  }

  /// As drain, but sleeps until a message arrives, the mailbox closes or `until` passes.
  template <typename Clock, typename Duration>
  void wait_and_drain(std::vector<Message>& out, std::chrono::time_point<Clock, Duration> until) {
    out.clear();
    std::unique_lock lock(mutex_);
    arrived_.wait_until(lock, until, [this] { return !queue_.empty() || closed_; });
    move_to(out);
  }

  /// Refuses all further messages; those inside can still be drained.
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
