#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/engine.hpp"

namespace skein::device {

/// A state that was copied out of the engine; counted while a sequence holds it. Its buffer may live longer, until no
/// queued command can access it.
class outside_state {
 public:
  /// Allocates memory for a state of this size, which the engine first touches when it copies; 0: the engine
  /// allocates.
  outside_state(std::uint32_t& count, std::size_t state_bytes)
      : buffer(std::make_shared<engine::parked_sequence>()), count_(count) {
    buffer->state.bytes.reserve(state_bytes);
    ++count_;
  }
  ~outside_state() { --count_; }
  outside_state(const outside_state&) = delete;  // would count twice
  outside_state& operator=(const outside_state&) = delete;

  const std::shared_ptr<engine::parked_sequence> buffer;

 private:
  std::uint32_t& count_;
};

/// Counts the states outside the engine, and those that will be: the base of every decision about their memory.
/// Outlives the states.
class outside_states {
 public:
  explicit outside_states(std::size_t state_bytes) : state_bytes_(state_bytes) {}
  outside_states(const outside_states&) = delete;  // states point into it
  outside_states& operator=(const outside_states&) = delete;

  /// A state for a sequence without a slot; several rows may share it.
  [[nodiscard]] std::shared_ptr<outside_state> hold() { return std::make_shared<outside_state>(held_, state_bytes_); }
  /// A state to which an answer that is cut can return.
  [[nodiscard]] std::shared_ptr<outside_state> hold_undo() { return std::make_shared<outside_state>(undo_, 0); }

  /// A request of several rows was admitted: its fork may need a state.
  void expect_fork() { ++forks_to_come_; }
  /// Such a request has forked, or never will.
  void settle_fork() { --forks_to_come_; }
  void forget_forks() { forks_to_come_ = 0; }

  /// No state is outside or expected to be.
  [[nodiscard]] bool none() const { return held_ + forks_to_come_ == 0; }
  /// Whether `more` states fit into the limit beside those outside and those to come.
  [[nodiscard]] bool fits(std::size_t more, std::size_t bytes_max) const {
    return (held_ + forks_to_come_ + more) * state_bytes_ <= bytes_max;
  }
  /// Whether one more state to return to fits into the limit.
  [[nodiscard]] bool fits_undo(std::size_t bytes_max) const {
    return (undo_ + std::size_t{1}) * state_bytes_ <= bytes_max;
  }

  [[nodiscard]] std::uint32_t held() const { return held_; }
  [[nodiscard]] std::uint32_t undo() const { return undo_; }
  [[nodiscard]] std::uint32_t forks_to_come() const { return forks_to_come_; }
  [[nodiscard]] std::size_t held_bytes() const { return held_ * state_bytes_; }
  [[nodiscard]] std::size_t undo_bytes() const { return undo_ * state_bytes_; }

 private:
  const std::size_t state_bytes_;
  std::uint32_t held_ = 0;           // by sequences
  std::uint32_t undo_ = 0;           // by settlements
  std::uint32_t forks_to_come_ = 0;  // admitted requests of several rows that have not forked
};

}  // namespace skein::device
