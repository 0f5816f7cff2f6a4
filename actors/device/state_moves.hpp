#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "actors/device/slot_command.hpp"
#include "engine/engine.hpp"
#include "storage/records.hpp"

namespace skein::device {

using storage::state_buffer;
using storage::state_key;

/// One call of the state_sink, in the order in which they are due.
struct state_news {
  enum class kind : std::uint8_t { state, slot_kept, slot_dropped } what;
  state_key key;
  state_buffer state;  ///< of the kind state; null: it will not come
};

/// What the state_sink is to be told. Answers to keys are prepared before anything changes, so that where memory lacks
/// no key is answered twice or never.
class news_box {
 public:
  /// Room for so many more; what is added within it does not throw.
  void reserve(std::size_t more) {
    if (items_.capacity() < items_.size() + more) items_.reserve(2 * items_.size() + more);
  }
  void add(state_news::kind what, const state_key& key, state_buffer state = nullptr) {
    items_.push_back({what, key, std::move(state)});
  }
  void refuse(const state_key& key) { add(state_news::kind::state, key); }

  /// Hands each out; where `tell` throws, from that one on again the next time.
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

/// States on their way between slots and host memory. The engine counts what has moved in the order in which it was
/// asked; so does this, and keeps every buffer alive until its state has moved. A state that leaves may be promised to
/// keys, which are answered when it has left.
class state_moves {
 public:
  using buffer = std::shared_ptr<engine::parked_sequence>;

  /// This slot is copied as it is when the commands before have run.
  void leave(std::vector<slot_command>& commands, slot_id slot, buffer to);
  /// This slot is copied as it is when the next plan begins, whatever becomes of its sequence until then.
  void leave_next(slot_id slot, buffer to);
  /// Begins what was put off until this plan; before anything else leaves in it.
  void issue(std::vector<slot_command>& commands);
  /// `key` gets what left last of what was asked for.
  void promise(const state_key& key, bool optional);
  /// A command reads the buffer; the number of this arrival, from 1.
  std::uint64_t come(std::shared_ptr<const void> from);

  /// So many have moved since the engine was made.
  void moved(const engine::moved_states& count, news_box& to);
  /// The engine is gone: none will move.
  void refuse_all(news_box& to);

  [[nodiscard]] std::size_t leaving() const { return leaving_.size(); }
  [[nodiscard]] std::size_t coming() const { return coming_.size(); }
  [[nodiscard]] bool promised() const { return !promised_.empty(); }
  [[nodiscard]] bool has_left(const buffer& b) const;
  [[nodiscard]] bool has_come(std::uint64_t arrival) const { return arrival <= moved_.arrived; }
  /// Copies promised as optional, of which there is a ceiling.
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
  std::vector<park_slot> put_off_;  // the last of leaving_
  engine::moved_states moved_;
  std::uint32_t optional_ = 0;
};

}  // namespace skein::device
