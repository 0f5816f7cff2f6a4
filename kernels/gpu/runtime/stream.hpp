#pragma once
#include <utility>

#include "kernels/gpu/runtime/failure.hpp"
#include "kernels/gpu/runtime/runtime.hpp"

namespace skein::kernels::gpu {

/// The host waits for all that is queued in a stream; reports what went wrong in it.
[[nodiscard]] inline result<void> wait_for(stream_handle in) {
  return outcome(SKEIN_GPU(StreamSynchronize)(in), "waiting for the device");
}

/// A queue of the device. Converts to its handle, which is the view of it that launchers take.
class stream {
 public:
  stream() { require(outcome(SKEIN_GPU(StreamCreateWithFlags)(&handle_, SKEIN_GPU(StreamNonBlocking)), "a stream")); }
  ~stream() { static_cast<void>(SKEIN_GPU(StreamDestroy)(handle_)); }
  stream(const stream&) = delete;  // one owner ends it
  stream& operator=(const stream&) = delete;

  [[nodiscard]] operator stream_handle() const { return handle_; }
  /// Waits for all that is queued; reports what went wrong in it.
  [[nodiscard]] result<void> synchronize() const { return wait_for(handle_); }

 private:
  stream_handle handle_ = nullptr;
};

/// A mark in a stream. Until it is recorded, everybody who waits for it goes on at once.
class event {
 public:
  event() { require(outcome(SKEIN_GPU(EventCreateWithFlags)(&handle_, SKEIN_GPU(EventDisableTiming)), "an event")); }
  ~event() { static_cast<void>(SKEIN_GPU(EventDestroy)(handle_)); }
  event(const event&) = delete;  // one owner ends it
  event& operator=(const event&) = delete;

  [[nodiscard]] result<void> record(stream_handle in) {
    return outcome(SKEIN_GPU(EventRecord)(handle_, in), "marking a stream");
  }
  /// The host waits.
  [[nodiscard]] result<void> synchronize() const {
    return outcome(SKEIN_GPU(EventSynchronize)(handle_), "waiting for the device");
  }
  /// True when the device has passed it, or will not any more: the wait that follows says which.
  [[nodiscard]] bool passed() const { return SKEIN_GPU(EventQuery)(handle_) != SKEIN_GPU(ErrorNotReady); }
  /// What is queued in `waiting` from now on waits.
  [[nodiscard]] result<void> hold(stream_handle waiting) const {
    return outcome(SKEIN_GPU(StreamWaitEvent)(waiting, handle_, 0), "waiting for a stream");
  }

 private:
  event_handle handle_ = nullptr;
};

/// A mark that also tells the device's time.
class timed_event {
 public:
  timed_event() { require(outcome(SKEIN_GPU(EventCreate)(&handle_), "an event")); }
  ~timed_event() { static_cast<void>(SKEIN_GPU(EventDestroy)(handle_)); }
  timed_event(const timed_event&) = delete;  // one owner ends it
  timed_event& operator=(const timed_event&) = delete;

  [[nodiscard]] result<void> record(stream_handle in) {
    return outcome(SKEIN_GPU(EventRecord)(handle_, in), "marking a stream");
  }
  /// The host waits.
  [[nodiscard]] result<void> synchronize() const {
    return outcome(SKEIN_GPU(EventSynchronize)(handle_), "waiting for the device");
  }
  /// Between two marks that were passed.
  [[nodiscard]] result<double> seconds_since(const timed_event& begin) const {
    float milliseconds = 0;
    if (auto r = outcome(SKEIN_GPU(EventElapsedTime)(&milliseconds, begin.handle_, handle_), "asking for the time"); !r)
      return r.error();
    return milliseconds * 1e-3;
  }

 private:
  event_handle handle_ = nullptr;
};

/// Launches that were recorded once and are repeated as one. The addresses in it must stay what they were.
class graph {
 public:
  /// What `queue_work` queues in the stream, which returns result<void>, is recorded and not run.
  template <typename Work>
  [[nodiscard]] static result<graph> record(stream_handle in, const Work& queue_work) {
    if (const auto r = outcome(SKEIN_GPU(StreamBeginCapture)(in, SKEIN_GPU(StreamCaptureModeThreadLocal)), "recording");
        !r)
      return r.error();
    const result<void> queued = queue_work();
    graph_handle recorded = nullptr;
    const auto ended = outcome(SKEIN_GPU(StreamEndCapture)(in, &recorded), "recording");
    graph made;
    auto instantiated = !queued ? queued : ended;
    if (instantiated)
      instantiated = outcome(SKEIN_GPU(GraphInstantiate)(&made.handle_, recorded, nullptr, nullptr, 0), "recording");
    if (recorded) static_cast<void>(SKEIN_GPU(GraphDestroy)(recorded));
    if (!instantiated) return instantiated.error();
    return made;
  }
  ~graph() {
    if (handle_) static_cast<void>(SKEIN_GPU(GraphExecDestroy)(handle_));
  }
  graph(graph&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  graph& operator=(graph&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  graph(const graph&) = delete;  // one owner ends it

  [[nodiscard]] result<void> launch(stream_handle in) const {
    return outcome(SKEIN_GPU(GraphLaunch)(handle_, in), "repeating what was recorded");
  }

 private:
  graph() = default;
  graph_exec_handle handle_ = nullptr;
};

}  // namespace skein::kernels::gpu
