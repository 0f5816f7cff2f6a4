#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "actors/device/device_mailbox.hpp"
#include "actors/device/engine_limits.hpp"
#include "actors/device/fair_queue.hpp"
#include "actors/device/kept_slots.hpp"
#include "actors/device/slot_command.hpp"
#include "actors/device/state_moves.hpp"
#include "base/clock.hpp"
#include "config/config.hpp"
#include "engine/engine.hpp"

/// The decisions of the device actor: which sequences have a slot, decode, prefill (and how much) or wait. A plain
/// class: messages and tick results in, slot commands, tick plans and events out; no thread, no clock, no engine.
///
/// Overview. Every row of a request is a sequence. A sequence is waiting, holds a slot, or is parked (its state copied
/// out). Each tick decodes one token for every sequence that can, then fills up with prefill chunks, taking turns among
/// the prompts. Plans run one tick ahead of results: when a tick is planned, it is not known yet whether the tick in
/// flight ended a sequence. That is safe because the engine freezes a stopped slot, whose rows then have no effect. A
/// slot may also be reassigned meanwhile, because engine commands and ticks keep their order.
///
/// If the engine has chunks, the prompt alone determines which tokens form a chunk (engine/prompt_parts.hpp): a plan
/// holds whole chunks, no copy is taken inside a chunk, and decode rows leave room for one chunk. So answers do not
/// depend on batch composition.
///
/// Rows of one request (`n`) share their prompt: row 0 prefills all but the last token, the other rows copy its state,
/// then each row feeds the last token itself and samples.
///
/// The bytes of states outside the engine are limited. No sequence is parked above the limit. A request of several
/// rows, which may have to keep a copy for rows without a slot, is admitted only with room for one, or if no state is
/// outside, so that every request can run: a single state may exceed the limit. While such a request waits for room, no
/// sequence is parked for a new request behind it, so that the number of states outside decreases.
///
/// A mixture of states is one request with one sequence for each state. The sequences get their slots together and are
/// parked and restored together. Each feeds all but the last token of the prompt independently; from then on they share
/// their ticks and sample as one.
///
/// States also enter and leave: a sequence may begin with a given state, and copies of its state inside the prompt are
/// handed out. A request that settles keeps its slot after its row has ended, until its text is decided. Ticks planned
/// before may have fed more than the text: then the state returns to the copy at the end of the prompt (or to the
/// beginning, if there was no room for a copy), and the text is fed again. The settled state is copied out, and the
/// slot, now free, holds it until another sequence needs the slot (kept_slots).
///
/// States move in parallel with the ticks (state_moves), limited by the engine's transfer buffers. An optional copy
/// without room is skipped. Other transfers wait, and a sequence whose state has not arrived plans no row while others
/// do.
namespace skein::device {

/// The settings of the scheduler: the section [queue], and what it needs of other sections.
struct scheduler_settings : config::queue_settings {
  std::uint32_t prefill_chunk_tokens = 128;  ///< prefill tokens of a tick while others decode; at least one chunk
  std::uint32_t vram_states_max = config::engine_settings{}.vram_states_max;
  std::uint32_t mixture_max = config::limit_settings{}.mixture_max;
};

struct scheduler_options : scheduler_settings {
  std::uint32_t slots = 1;              ///< of the engine
  std::uint32_t max_tick_tokens = 512;  ///< of the engine
  std::uint32_t max_tick_rows = 64;     ///< of the engine
  engine_limits limits = {};            ///< of the engine
  std::uint32_t chunk_tokens = 0;       ///< of the engine
  std::size_t state_floats = 0;         ///< of the engine
  std::uint32_t leaving_max = ~0u;      ///< of the engine: concurrent transfers out of slots
  std::uint32_t coming_max = ~0u;       ///< of the engine: concurrent transfers into slots
  bool keeps_states = false;            ///< there is a state_sink; else copies and settles are not answered
};

/// The scheduler's counters, for logs, health and tests.
struct scheduler_counts {
  std::uint32_t slots_used = 0, slots_kept = 0, waiting = 0, parked = 0, requests = 0;
  std::uint32_t waiting_max = 0;  ///< the current limit of waiting requests
  std::uint32_t paused = 0;       ///< requests with a slow reader
  std::size_t parked_bytes = 0, undo_bytes = 0;
  std::uint64_t prompt_tokens = 0, generated_tokens = 0, finished = 0, rejected = 0, cancelled = 0, preemptions = 0;
  std::uint64_t states_written = 0;                    ///< sequences that began with a state from host memory
  std::uint64_t kept_hits = 0;                         ///< sequences that resumed in a slot that held their state
  std::uint64_t copies_taken = 0, copies_refused = 0;  ///< wanted copies
  std::uint64_t settles = 0, settles_back = 0;         ///< settled states; those that returned to an earlier state
};

class scheduler {
 public:
  explicit scheduler(const scheduler_options& options);
  ~scheduler();
  scheduler(const scheduler&) = delete;  // sequences point into it
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
  [[nodiscard]] bool waits_for_states() const { return !lost_ && moves_.leaving() + moves_.coming() > 0; }
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
    for (std::uint32_t i = 0; i < outbox_.size(); ++i) {
      if (outbox_[i].items.empty()) continue;
      events batch = std::exchange(outbox_[i], {});
      deliver(i, std::move(batch));
      batch.items.clear();  // NOLINT(bugprone-use-after-move): its memory is used again
      outbox_[i].items.swap(batch.items);
    }
  }

  /// Calls tell(state_news) for each pending call of the state_sink. If that throws, the rest is passed next time.
  template <typename Tell>
  void take_news(Tell tell) {
    news_.hand_out(tell);
  }
  /// Drops all kept states, because the thread is ending.
  void drop_kept();

  [[nodiscard]] bool lost() const { return lost_; }
  [[nodiscard]] const error& lost_why() const { return lost_why_; }
  /// Whether it was shut down, every request has ended and every key was answered.
  [[nodiscard]] bool finished() const { return shutting_down_ && requests_.empty() && !moves_.promised(); }
  /// When expire() next has something to do; the far future if never.
  [[nodiscard]] steady_time next_deadline() const { return next_deadline_; }
  [[nodiscard]] scheduler_counts counts() const;
  /// Checks the invariants (slots, queues and counters agree); for tests and idle moments.
  void self_check() const;

 private:
  struct request;
  struct sequence;
  struct settlement;
  class outside_state;
  struct row_reference {
    request_id id;
    std::uint32_t row;
  };
  struct planned_row {
    row_reference who;
    bool last_without_sample;
  };

  // scheduler.cpp: messages, results, ends
  request* find(request_id id);
  void emit(const request& r, event e);
  void reject(request& r, error why);
  void reject(const submit& message, error why);
  void refuse_rest(request& r);
  [[nodiscard]] std::optional<error> objection(submit& message) const;
  void end_row(sequence& s, finish_cause cause);
  void leave(sequence& s);
  void finish(sequence& s, finish_cause cause);
  void drop(request& r, finish_cause cause);
  void erase(request& r);
  void enqueue(sequence& s);
  void dequeue(sequence& s);
  void leave_outside(sequence& s);
  void settle_fork(request& r);
  bool take_slot(sequence& s, const state_key& wanted);
  void release(sequence& s);
  void note_deadline(steady_time t);

  // scheduler_plan.cpp: the next tick
  void admit(steady_time now);
  void place(sequence& s, steady_time now);
  void begin(sequence& s);
  void begin_afresh(sequence& s);
  void bring_back(sequence& s, const state_moves::buffer& from);
  [[nodiscard]] bool can_fork(const request& r) const;
  void fork_rows(request& r);
  [[nodiscard]] bool lacks_beginning(const request& r) const;
  [[nodiscard]] bool lacks_memory(const request& r) const;
  [[nodiscard]] bool lacks_state(const request& r, const sequence& s) const;
  [[nodiscard]] bool can_park(const sequence& s) const;
  [[nodiscard]] bool fits_outside(std::size_t more_states) const;
  bool make_room(const request& waits);
  void park(sequence& s);
  void plan_rows(std::span<const std::uint8_t> congested);
  void plan_mixture(request& r);
  void plan_decode(std::span<const std::uint8_t> congested);
  void plan_prefill(std::span<const std::uint8_t> congested);
  [[nodiscard]] std::uint32_t plan_prefill_row(sequence& s, std::uint32_t budget);
  [[nodiscard]] engine::prompt_piece next_piece(const sequence& s, std::uint32_t budget) const;
  /// The number of decode rows that fit into a tick beside a chunk.
  [[nodiscard]] std::uint32_t max_decode_rows() const { return options_.max_tick_tokens - options_.chunk_tokens; }
  [[nodiscard]] bool awaits_chunk(std::span<const std::uint8_t> congested) const;
  void plan_row(sequence& s, const engine::row& row, bool last_without_sample);
  [[nodiscard]] bool is_here(const sequence& s) const;
  [[nodiscard]] bool may_leave(std::size_t more) const;
  [[nodiscard]] bool may_come(std::size_t more) const;
  [[nodiscard]] bool resting(const sequence& s, std::span<const std::uint8_t> congested) const;
  [[nodiscard]] bool can_decode(const sequence& s) const;
  [[nodiscard]] bool can_prefill(const sequence& s) const;

  // scheduler_settle.cpp: states handed to the state_sink
  void copy_out(sequence& s);
  void advance_settling(sequence& s);
  [[nodiscard]] bool feed_text(sequence& s);
  void hand_over_state(sequence& s);

  scheduler_options options_;
  std::uint32_t states_outside_ = 0;  // held by sequences
  std::uint32_t undo_states_ = 0;     // held by settlements
  std::uint32_t forks_to_come_ = 0;   // admitted requests of several rows that have not forked; each may need a state
  std::unordered_map<request_id, std::unique_ptr<request>> requests_;
  fair_queue<row_reference> waiting_;
  std::vector<sequence*> slots_;  // [slots], nullptr: free
  kept_slots free_slots_;
  std::vector<slot_id> forgotten_;      // cleared when the next plan begins
  std::uint32_t prefill_turn_ = 0;      // slot that prefills first
  std::uint32_t decode_turn_ = 0;       // slot that decodes first, if not all fit into a tick
  std::uint32_t waiting_requests_ = 0;  // not admitted yet
  std::uint32_t parked_ = 0, paused_ = 0;
  tick_work work_;
  bool waits_for_arrivals_ = false;                  // rows may be planned although their states have not arrived
  std::vector<std::vector<planned_row>> in_flight_;  // oldest first; two at most
  std::vector<std::vector<planned_row>> spare_plans_;
  state_moves moves_;
  news_box news_;
  std::vector<std::unique_ptr<request>> ended_;  // kept alive because commands of this plan may point into them
  std::vector<events> outbox_;                   // by io thread
  steady_time next_deadline_ = steady_time::max();
  steady_time shutdown_deadline_ = steady_time::max();
  bool shutting_down_ = false;
  bool lost_ = false;
  error lost_why_;
  scheduler_counts counts_;
};

}  // namespace skein::device
