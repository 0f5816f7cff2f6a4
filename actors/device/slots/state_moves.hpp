#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "actors/device/slots/slot_command.hpp"
#include "engine/engine.hpp"
#include "storage/records/records.hpp"

namespace skein::device {

using storage::state_buffer;
using storage::state_key;

/// One pending call of the state_sink.
struct state_news {
  enum class kind : std::uint8_t { state, slot_kept, slot_dropped } what;
  state_key key;
  state_buffer state;  ///< for kind::state; null: it will never be sent
};

/// Pending calls of the state_sink, in order. Memory for the answers to keys is reserved before anything changes, so
/// that every key is answered exactly once even if memory runs out.
class news_box {
 public:
  /// Reserves room for `more` items; adding them does not throw.
  void reserve(std::size_t more) {
    if (items_.capacity() < items_.size() + more) items_.reserve(2 * items_.size() + more);
  }
  void add(state_news::kind what, const state_key& key, state_buffer state = nullptr) {
    items_.push_back({what, key, std::move(state)});
  }
  void refuse(const state_key& key) { add(state_news::kind::state, key); }

  /// Calls `tell` for each item; if it throws, the next call starts again with that item.
  template <typename Tell>
  void hand_out(Tell tell) {
    for (; told_ < items_.size(); ++told_) tell(std::as_const(items_[told_]));
    items_.clear();
    told_ = 0;
  }

 private:
  std::vector<state_news> items_;
  std::size_t told_ = 0;
};

/// States in transfer between slots and host memory. The engine counts completed transfers in the order of the
/// requests; this class does the same, and keeps every buffer alive until its state has moved. A state that leaves may
/// be promised to keys, which are answered when it has left.
class state_moves {
 public:
  using buffer = std::shared_ptr<engine::parked_sequence>;

  /// Copies the slot out, as it is after the earlier commands.
  void leave(std::vector<slot_command>& commands, slot_id slot, buffer to);
  /// Copies the slot out, as it is at the start of the next plan, even if its sequence ends before.
  void leave_next(slot_id slot, buffer to);
  /// Issues the copies put off until this plan; call before any other state leaves in it.
  void issue(std::vector<slot_command>& commands);
  /// Promises the most recent departure to `key`.
  void promise(const state_key& key, bool optional);
  /// Registers a command that writes the buffer to a slot; returns the number of this arrival, from 1.
  std::uint64_t come(std::shared_ptr<const void> from);

  /// Takes the engine's counts of states moved since its creation.
  void moved(const engine::moved_states& count, news_box& to);
  /// The engine is gone: no further state will move.
  void refuse_all(news_box& to);

  [[nodiscard]] std::size_t leaving() const { return leaving_.size(); }
  [[nodiscard]] std::size_t coming() const { return coming_.size(); }
  [[nodiscard]] bool promised() const { return !promised_.empty(); }
  [[nodiscard]] bool has_left(const buffer& b) const;
  [[nodiscard]] bool has_come(std::uint64_t arrival) const { return arrival <= moved_.arrived; }
  /// Outstanding promises of optional copies; their number is limited.
  [[nodiscard]] std::uint32_t optional() const { return optional_; }

 private:
  struct promised_state {
    state_key key;
    std::uint64_t number;  // of the departure
    bool optional;
  };

  std::deque<buffer> leaving_;                      // numbers from moved_.departed + 1
  std::deque<std::shared_ptr<const void>> coming_;  // numbers from moved_.arrived + 1
  std::deque<promised_state> promised_;
  std::vector<park_slot> put_off_;  // the last elements of leaving_
  engine::moved_states moved_;
  std::uint32_t optional_ = 0;
};

}  // namespace skein::device
