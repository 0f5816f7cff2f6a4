#pragma once
#include <utility>

#include "kernels/gpu/runtime/failure.hpp"
#include "kernels/gpu/runtime/runtime.hpp"

namespace skein::kernels::gpu {

/// Waits on the host for all work queued in a stream; reports the errors of that work.
[[nodiscard]] inline result<void> wait_for(stream_handle in) {
  return outcome(SKEIN_GPU(StreamSynchronize)(in), "waiting for the device");
}

/// A stream of the device. Converts to its handle, which is what launchers take.
class stream {
 public:
  stream() {
    require(outcome(SKEIN_GPU(StreamCreateWithFlags)(&handle_, SKEIN_GPU(StreamNonBlocking)), "creating a stream"));
  }
  ~stream() { static_cast<void>(SKEIN_GPU(StreamDestroy)(handle_)); }
  stream(const stream&) = delete;  // one owner destroys it
  stream& operator=(const stream&) = delete;

  [[nodiscard]] operator stream_handle() const { return handle_; }
  /// Waits for all queued work; reports the errors of that work.
  [[nodiscard]] result<void> synchronize() const { return wait_for(handle_); }

 private:
  stream_handle handle_ = nullptr;
};

/// An event in a stream. Before it is recorded, waits for it return at once.
class event {
 public:
  event() {
    require(outcome(SKEIN_GPU(EventCreateWithFlags)(&handle_, SKEIN_GPU(EventDisableTiming)), "creating an event"));
  }
  ~event() { static_cast<void>(SKEIN_GPU(EventDestroy)(handle_)); }
  event(const event&) = delete;  // one owner destroys it
  event& operator=(const event&) = delete;

  [[nodiscard]] result<void> record(stream_handle in) {
    return outcome(SKEIN_GPU(EventRecord)(handle_, in), "recording an event");
  }
  /// Waits on the host.
  [[nodiscard]] result<void> synchronize() const {
    return outcome(SKEIN_GPU(EventSynchronize)(handle_), "waiting for the device");
  }
  /// True if the device has passed the event or never will; the wait that follows reports which.
  [[nodiscard]] bool passed() const { return SKEIN_GPU(EventQuery)(handle_) != SKEIN_GPU(ErrorNotReady); }
  /// Work queued in `waiting` from now on waits for the event.
  [[nodiscard]] result<void> hold(stream_handle waiting) const {
    return outcome(SKEIN_GPU(StreamWaitEvent)(waiting, handle_, 0), "waiting for an event");
  }

 private:
  event_handle handle_ = nullptr;
};

/// An event with a timestamp.
class timed_event {
 public:
  timed_event() { require(outcome(SKEIN_GPU(EventCreate)(&handle_), "creating an event")); }
  ~timed_event() { static_cast<void>(SKEIN_GPU(EventDestroy)(handle_)); }
  timed_event(const timed_event&) = delete;  // one owner destroys it
  timed_event& operator=(const timed_event&) = delete;

  [[nodiscard]] result<void> record(stream_handle in) {
    return outcome(SKEIN_GPU(EventRecord)(handle_, in), "recording an event");
  }
  /// Waits on the host.
  [[nodiscard]] result<void> synchronize() const {
    return outcome(SKEIN_GPU(EventSynchronize)(handle_), "waiting for the device");
  }
  /// The time between two events that the device has passed.
  [[nodiscard]] result<double> seconds_since(const timed_event& begin) const {
    float milliseconds = 0;
    if (auto r = outcome(SKEIN_GPU(EventElapsedTime)(&milliseconds, begin.handle_, handle_), "reading the time"); !r)
      return r.error();
    return milliseconds * 1e-3;
  }

 private:
  event_handle handle_ = nullptr;
};

/// A CUDA graph: launches that are captured once and replayed together. The addresses in it must stay valid.
class graph {
 public:
  /// Captures the work that `queue_work` queues in the stream, without running it. `queue_work` returns result<void>.
  template <typename Work>
  [[nodiscard]] static result<graph> record(stream_handle in, const Work& queue_work) {
    if (const auto r = outcome(SKEIN_GPU(StreamBeginCapture)(in, SKEIN_GPU(StreamCaptureModeThreadLocal)), "capturing");
        !r)
      return r.error();
    const result<void> queued = queue_work();
    graph_handle recorded = nullptr;
    const auto ended = outcome(SKEIN_GPU(StreamEndCapture)(in, &recorded), "capturing");
    graph made;
    auto instantiated = !queued ? queued : ended;
    if (instantiated)
      instantiated =
          outcome(SKEIN_GPU(GraphInstantiate)(&made.handle_, recorded, nullptr, nullptr, 0), "instantiating a graph");
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
  graph(const graph&) = delete;  // one owner destroys it

  [[nodiscard]] result<void> launch(stream_handle in) const {
    return outcome(SKEIN_GPU(GraphLaunch)(handle_, in), "replaying a graph");
  }

 private:
  graph() = default;
  graph_exec_handle handle_ = nullptr;
};

}  // namespace skein::kernels::gpu
