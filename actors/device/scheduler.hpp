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
#include "engine/engine.hpp"

/// The decisions of the device actor: who has a slot, who decodes, who prefills how much, who waits. A plain class:
/// messages and tick results in, slot commands, tick plans and events out; no thread, no clock, no engine.
///
/// The idea. Every row of a request is a sequence. A sequence is waiting, holds a slot, or is parked (its state copied
/// out). Each tick decodes one token for every sequence that can, then fills up with prefill chunks, taking turns among
/// the prompts. Plans run one tick ahead of results: whether the tick in flight ended a sequence is not known yet when
/// the next is planned. That is safe, since the engine freezes a slot that stopped, and its rows then do nothing; a
/// slot given to somebody else meanwhile is safe as well, since engine commands and ticks keep their order.
///
/// Where the engine has chunks, which tokens go in which chunk is said by the prompt alone (engine/prompt_parts.hpp):
/// a plan carries whole chunks, a copy inside one is not taken, and decode rows leave room for one. So what else is
/// planned changes no bit of an answer.
///
/// Rows of one request (`n`) share their prompt: row 0 prefills all but the last token, the other rows copy its state,
/// then each feeds the last token itself and draws.
///
/// States outside the engine have a ceiling in bytes. Whoever would make room is not parked above it, and a request of
/// several rows, which may have to keep a copy for those that find no slot, is not admitted without room for one;
/// unless nothing is outside, so that every request can run: one state may pass the ceiling. While such a request waits
/// for room, nobody is parked for a fresh one behind it, so that the states outside become fewer.
///
/// A mixture of states is one request with a sequence for each of its states. They get their slots together, are parked
/// and brought back together, and feed all but the last token of the prompt each for itself; from then on they share
/// their ticks and draw as one.
///
/// States come and go besides: a sequence may begin with one, and copies of what a prompt made of it are handed out. A
/// request that settles keeps its slot when its row is over, until its text is decided. Ticks planned before that may
/// have fed more than the text has: then the state goes back to the copy at the end of the prompt (or, where there was
/// no room for one, to the beginning), and the text is fed again. The settled state is copied out, and the slot, free
/// from then on, holds it until somebody needs the slot (kept_slots).
///
/// States move beside the ticks (state_moves), as many at a time as the engine has room for. A copy inside a prompt for
/// which there is no room is not taken; whoever must leave, or comes, waits for its turn, and a sequence whose state is
/// still on its way in plans no row while others do.
namespace skein::device {

struct scheduler_options {
  std::uint32_t slots = 1;                     ///< of the engine
  std::uint32_t max_tick_tokens = 512;         ///< of the engine
  std::uint32_t max_tick_rows = 64;            ///< of the engine
  engine_limits limits;                        ///< of the engine
  std::uint32_t chunk_tokens = 0;              ///< of the engine
  std::size_t state_floats = 0;                ///< of the engine
  std::uint32_t leaving_max = ~0u;             ///< of the engine: states on their way out at a time
  std::uint32_t coming_max = ~0u;              ///< of the engine: states on their way into slots
  std::uint32_t prefill_chunk_tokens = 128;    ///< prefill tokens of a tick while others decode; a chunk at least
  std::uint32_t waiting_max = 1024;            ///< requests in the queue; one more is rejected as overloaded
  std::uint32_t waiting_per_client_max = 256;  ///< of one client, likewise
  std::uint32_t turn_tokens = 256;  ///< tokens after which a sequence may have to give its slot to a waiting one
  std::uint32_t parked_max = 4096;  ///< sequences whose state may be copied out at a time
  std::size_t parked_bytes_max = std::size_t{1} << 30;  ///< of all states that are copied out
  bool keeps_states = false;            ///< somebody takes copies and settled states; else their keys are not answered
  std::uint32_t copies_max = 16;        ///< wanted copies on their way out at a time; more are answered without a state
  std::uint32_t vram_states_max = ~0u;  ///< settled states that stay in free slots
  std::uint32_t mixture_max = 8;        ///< states of one mixture
  std::size_t undo_bytes_max = std::size_t{1} << 30;  ///< of states at the ends of prompts, for answers that are cut
};

/// What the scheduler knows about itself, for logs, health and tests.
struct scheduler_counts {
  std::uint32_t slots_used = 0, slots_kept = 0, waiting = 0, parked = 0, requests = 0;
  std::uint32_t waiting_max = 0;  ///< that may wait, by the limits of now
  std::uint32_t paused = 0;       ///< requests whose reader is slow
  std::size_t parked_bytes = 0, undo_bytes = 0;
  std::uint64_t prompt_tokens = 0, generated_tokens = 0, finished = 0, rejected = 0, cancelled = 0, preemptions = 0;
  std::uint64_t states_written = 0;                    ///< sequences that began with a state from host memory
  std::uint64_t kept_hits = 0;                         ///< sequences that went on in a slot that held their state
  std::uint64_t copies_taken = 0, copies_refused = 0;  ///< of those wanted
  std::uint64_t settles = 0, settles_back = 0;         ///< states settled; those of them that had to go back
};

class scheduler {
 public:
  explicit scheduler(const scheduler_options& options);
  ~scheduler();
  scheduler(const scheduler&) = delete;  // sequences point into it
  scheduler& operator=(const scheduler&) = delete;

  /// What throws in here was not taken: after lose_device() it can be handed in again, and is then answered once.
  void handle(submit&& message, steady_time now);
  void handle(settle&& message, steady_time now);
  void handle(cancel&& message, steady_time now);
  void handle(cancel_row&& message, steady_time now);
  void handle(pause&& message, steady_time now);
  void handle(resume&& message, steady_time now);
  void handle(forget&& message, steady_time now);
  void handle(change_limits&& message, steady_time now);
  void handle(shutdown&& message, steady_time now);

  /// Ends what is past its deadline. Cheap when nothing is.
  void expire(steady_time now);

  /// Admits, then plans the next tick. `congested`: io threads whose event queue is full; their requests rest.
  /// The result is valid until the next call. A plan with rows counts as submitted: the next but one absorb is its.
  [[nodiscard]] const tick_work& plan(steady_time now, std::span<const std::uint8_t> congested = {});
  /// The result of the oldest plan with rows that was not absorbed yet.
  void absorb(const engine::tick_result& result, steady_time now);
  /// So many states have moved since the engine was made.
  void absorb(const engine::moved_states& moved);
  /// States are on their way, for which somebody may wait: ask the engine again soon.
  [[nodiscard]] bool waits_for_states() const { return !lost_ && moves_.leaving() + moves_.coming() > 0; }
  /// The engine is gone and touches no buffer any more: nothing is planned, and end_lost() is due before any message is
  /// handled. Only the first reason counts.
  void lose_device(error why) noexcept;
  /// After lose_device(): every request ends; every later submit is rejected. Asks nothing of what an exception may
  /// have left half done. Where memory lacks it throws, and goes on from there when called again.
  void end_lost();

  /// Calls deliver(reply_to, events&&) for each io thread that has some, and forgets them. What memory it leaves in the
  /// events is used again.
  template <typename Deliver>
  void take_events(Deliver deliver) {
    for (std::uint32_t i = 0; i < outbox_.size(); ++i) {
      if (outbox_[i].items.empty()) continue;
      events batch = std::exchange(outbox_[i], {});
      deliver(i, std::move(batch));
      batch.items.clear();
      outbox_[i].items.swap(batch.items);
    }
  }

  /// Calls tell(state_news) for everything that the state_sink is to know. Where that throws, the rest comes next time.
  template <typename Tell>
  void take_news(Tell tell) {
    news_.hand_out(tell);
  }
  /// The thread ends, and with it what slots hold.
  void drop_kept();

  [[nodiscard]] bool lost() const { return lost_; }
  [[nodiscard]] const error& lost_why() const { return lost_why_; }
  /// Shut down, and every request has ended and every key was answered.
  [[nodiscard]] bool finished() const { return shutting_down_ && requests_.empty() && !moves_.promised(); }
  /// When expire() has something to do; the far future if never.
  [[nodiscard]] steady_time next_deadline() const { return next_deadline_; }
  [[nodiscard]] scheduler_counts counts() const;
  /// States what must always hold (slots, queues and counters agree); for tests and idle moments.
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
    bool last_without_draw;
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
  /// For which a tick has room beside a chunk.
  [[nodiscard]] std::uint32_t max_decode_rows() const { return options_.max_tick_tokens - options_.chunk_tokens; }
  [[nodiscard]] bool awaits_chunk(std::span<const std::uint8_t> congested) const;
  void plan_row(sequence& s, const engine::row& row, bool last_without_draw);
  [[nodiscard]] bool is_here(const sequence& s) const;
  [[nodiscard]] bool may_leave(std::size_t more) const;
  [[nodiscard]] bool may_come(std::size_t more) const;
  [[nodiscard]] bool resting(const sequence& s, std::span<const std::uint8_t> congested) const;
  [[nodiscard]] bool can_decode(const sequence& s) const;
  [[nodiscard]] bool can_prefill(const sequence& s) const;

  // scheduler_settle.cpp: states that are handed out
  void copy_out(sequence& s);
  void advance_settling(sequence& s);
  [[nodiscard]] bool feed_text(sequence& s);
  void hand_over_state(sequence& s);

  scheduler_options options_;
  std::uint32_t states_outside_ = 0;  // held by sequences
  std::uint32_t undo_states_ = 0;     // held by settlements
  std::uint32_t forks_to_come_ = 0;   // admitted requests of several rows, each of which may need one more
  std::unordered_map<request_id, std::unique_ptr<request>> requests_;
  fair_queue<row_reference> waiting_;
  std::vector<sequence*> slots_;  // [slots], nullptr: free
  kept_slots free_slots_;
  std::vector<slot_id> forgotten_;      // cleared when the next plan begins
  std::uint32_t prefill_turn_ = 0;      // slot whose prompt goes first
  std::uint32_t decode_turn_ = 0;       // slot that decodes first, when not all fit into a tick
  std::uint32_t waiting_requests_ = 0;  // not admitted yet
  std::uint32_t parked_ = 0, paused_ = 0;
  tick_work work_;
  bool waits_for_arrivals_ = false;                  // rows of states that are on their way may be planned
  std::vector<std::vector<planned_row>> in_flight_;  // oldest first; two at most
  std::vector<std::vector<planned_row>> spare_plans_;
  state_moves moves_;
  news_box news_;
  std::vector<std::unique_ptr<request>> ended_;  // commands of this plan may point into them
  std::vector<events> outbox_;                   // by io thread
  steady_time next_deadline_ = steady_time::max();
  steady_time shutdown_deadline_ = steady_time::max();
  bool shutting_down_ = false;
  bool lost_ = false;
  error lost_why_;
  scheduler_counts counts_;
};

}  // namespace skein::device
