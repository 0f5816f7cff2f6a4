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

/// Copies of states that are on their way out of the engine: first due, taken before the next tick's rows run, then
/// promised to keys, and whole once a tick planned after them was absorbed.
class state_copies {
 public:
  using buffer = std::shared_ptr<engine::parked_sequence>;

  /// This slot is copied as it is when the next plan begins, whatever becomes of its sequence until then.
  void due(slot_id slot, const buffer& to) { due_.push_back({slot, to}); }
  /// `key` gets what is in the buffer when the tick of that number was absorbed. Numbers never fall.
  void promise(const state_key& key, const buffer& of, std::uint64_t tick, bool optional) {
    promised_.push_back({key, of, tick, optional});
    if (optional) ++optional_;
  }

  /// Moves what is due to the end of `commands`.
  void issue(std::vector<slot_command>& commands);
  /// What is whole now: all ticks up to this one were absorbed.
  void hand_over(std::uint64_t absorbed, news_box& to);
  /// Every command has run.
  void hand_over_all(news_box& to);
  /// The engine is gone: none will come.
  void refuse_all(news_box& to);

  [[nodiscard]] bool empty() const { return promised_.empty(); }
  /// Copies promised as optional, of which there is a ceiling.
  [[nodiscard]] std::uint32_t optional() const { return optional_; }

 private:
  struct promised_copy {
    state_key key;
    buffer of;
    std::uint64_t tick;
    bool optional;
  };
  void hand_over_first(news_box& to);

  std::vector<park_slot> due_;
  std::deque<promised_copy> promised_;
  std::uint32_t optional_ = 0;
};

}  // namespace skein::device
