#pragma once
#include <cstdint>

#include "actors/device/request_book.hpp"
#include "actors/device/scheduler_options.hpp"
#include "actors/device/sequence.hpp"
#include "actors/device/slot_table.hpp"

namespace skein::device {

/// The states that the scheduler hands out: copies inside prompts, and settled states.
///
/// A request that settles keeps its slot after its row has ended (or stays parked), until its text is decided. Ticks
/// planned before may have fed more than the text: then the state returns to the copy at the end of the prompt (or to
/// the beginning, if there was no room for a copy), and the text is fed again. The settled state is copied out, and the
/// slot, now free, holds it until another sequence needs the slot (kept_slots).
class state_handout {
 public:
  /// The arguments outlive it.
  state_handout(const scheduler_options& options, slot_table& slots, request_book& requests, news_box& news)
      : options_(options), slots_(slots), requests_(requests), news_(news) {}

  /// Call after planning a piece of the prompt: its end may be a position of a wanted copy, or the end of the prompt.
  /// Copies are taken when the next plan begins. None is taken if too many states are in transfer already.
  void copy_out(sequence& s);
  /// Continues settling a row that holds a slot, if its text is decided. The row may leave.
  void advance(sequence& s);

  void add_to(scheduler_counts& counts) const;

 private:
  [[nodiscard]] bool feed_text(sequence& s);
  void hand_over(sequence& s);

  const scheduler_options& options_;
  slot_table& slots_;
  request_book& requests_;
  news_box& news_;
  std::uint64_t copies_taken_ = 0, copies_refused_ = 0, settles_ = 0, settles_back_ = 0;
};

}  // namespace skein::device
