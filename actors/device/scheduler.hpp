#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "actors/device/device_mailbox.hpp"
#include "actors/device/event_box.hpp"
#include "actors/device/placement.hpp"
#include "actors/device/request_book.hpp"
#include "actors/device/row_planner.hpp"
#include "actors/device/scheduler_options.hpp"
#include "actors/device/slot_table.hpp"
#include "actors/device/slots/slot_command.hpp"
#include "actors/device/slots/state_moves.hpp"
#include "actors/device/state_handout.hpp"
#include "base/clock.hpp"
#include "engine/engine.hpp"

namespace skein::device {

/// The decisions of the device actor: which sequences have a slot, decode, prefill (and how much) or wait. A plain
/// class: messages and tick results in, slot commands, tick plans and events out; no thread, no clock, no engine.
///
/// Overview. Every row of a request is a sequence. A sequence is waiting, holds a slot, or is parked (its state copied
/// out). Plans run one tick ahead of results: when a tick is planned, it is not known yet whether the tick in flight
/// ended a sequence. That is safe because the engine freezes a stopped slot, whose rows then have no effect. A slot may
/// also be reassigned meanwhile, because engine commands and ticks keep their order.
///
/// This class takes the messages, results and deadlines, and runs the steps of a plan. The parts, each with its own
/// members, in the order in which they know each other:
///
///   slot_table      where the state of each sequence is, and the engine commands that move it
///   request_book    requests, their queue, their ends
///   state_handout   copies of states inside prompts, and settled states
///   placement       which sequences get slots
///   row_planner     which sequences get rows in the next tick
///
/// A sequence is where its sequence_place says, does what its row_stage says, and belongs to a request in a
/// request_phase.
class scheduler {
 public:
  explicit scheduler(const scheduler_options& options);
  ~scheduler();
  scheduler(const scheduler&) = delete;  // its parts and sequences point into it
  scheduler& operator=(const scheduler&) = delete;

  /// A message whose handler throws was not taken: after lose_device() it can be passed again, and is answered once.
  void handle(submit&& message, steady_time now);
  void handle(settle&& message, steady_time now);
  void handle(cancel&& message, steady_time now);
  void handle(cancel_row&& message, steady_time now);
  void handle(pause&& message, steady_time now);
  void handle(resume&& message, steady_time now);
  void handle(forget&& message, steady_time now);
  void handle(change_limits&& message, steady_time now);
  void handle(shutdown&& message, steady_time now);

  /// Ends requests past their deadline. Cheap if there are none.
  void expire(steady_time now);

  /// Admits requests, then plans the next tick. `congested`: io threads with a full event queue; their requests pause.
  /// The result is valid until the next call. A plan with rows counts as submitted, and its result must be absorbed.
  [[nodiscard]] const tick_work& plan(steady_time now, std::span<const std::uint8_t> congested = {});
  /// Takes the result of the oldest plan with rows that was not absorbed yet.
  void absorb(const engine::tick_result& result, steady_time now);
  /// Takes the engine's counts of states moved since its creation.
  void absorb(const engine::moved_states& moved);
  /// States are in transfer and a sequence may wait for them: poll the engine soon.
  [[nodiscard]] bool waits_for_states() const {
    return !lost() && slots_.moves().leaving() + slots_.moves().coming() > 0;
  }
  /// Call when the engine is gone and accesses no buffer any more: nothing more is planned. Call end_lost() before
  /// handling another message. Only the first reason is kept.
  void lose_device(error why) noexcept;
  /// After lose_device(): ends every request; later submits are rejected. Does not rely on anything that an exception
  /// may have left incomplete. If memory is short it throws, and continues from there when called again.
  void end_lost();

  /// Calls deliver(reply_to, events&&) for each io thread with events, and discards them. Memory left in the events is
  /// reused.
  template <typename Deliver>
  void take_events(Deliver deliver) {
    events_.hand_out(deliver);
  }

  /// Calls tell(state_news) for each pending call of the state_sink. If that throws, the rest is passed next time.
  template <typename Tell>
  void take_news(Tell tell) {
    news_.hand_out(tell);
  }
  /// Drops all kept states, because the thread is ending.
  void drop_kept() { slots_.drop_kept(); }

  [[nodiscard]] bool lost() const { return lost_why_.has_value(); }
  /// Call after lose_device() only.
  [[nodiscard]] const error& lost_why() const { return *lost_why_; }
  /// Whether it was shut down, every request has ended and every key was answered.
  [[nodiscard]] bool finished() const { return shutdown_at_ && requests_.empty() && !slots_.moves().promised(); }
  /// When expire() next has something to do; the far future if never.
  [[nodiscard]] steady_time next_deadline() const { return next_deadline_; }
  [[nodiscard]] scheduler_counts counts() const;
  /// Checks the invariants (slots, queues and counters agree); for tests and idle moments.
  void self_check() const;

 private:
  [[nodiscard]] std::optional<error> refusal(submit& message) const;
  void absorb(const planned_row& planned, const engine::row_result& row);
  void report(sequence& s, token_id token_of_row, const sampling::token_logprobs& logprobs);
  void note_deadline(steady_time t);
  void end_soon(request_record& r, finish_cause cause);

  scheduler_options options_;
  tick_work work_;
  news_box news_;
  event_box events_;
  slot_table slots_;
  request_book requests_;
  state_handout handout_;
  placement placement_;
  row_planner rows_;
  steady_time next_deadline_ = steady_time::max();
  std::optional<steady_time> shutdown_at_;  // the deadline; none: it was not shut down
  std::optional<error> lost_why_;           // none: the device works
  std::uint64_t generated_tokens_ = 0, cancelled_ = 0;
};

}  // namespace skein::device
