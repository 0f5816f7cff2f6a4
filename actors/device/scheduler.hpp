#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <variant>
#include <vector>

#include "actors/device/device_mailbox.hpp"
#include "actors/device/fair_queue.hpp"
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
/// Rows of one request (`n`) share their prompt: row 0 prefills all but the last token, the other rows copy its state,
/// then each feeds the last token itself and draws.
///
/// States outside the engine have a ceiling in bytes. Whoever would make room is not parked above it, and a request of
/// several rows, which may have to keep a copy for those that find no slot, is not admitted without room for one;
/// unless nothing is outside, so that every request can run: one state may pass the ceiling. While such a request waits
/// for room, nobody is parked for a fresh one behind it, so that the states outside become fewer.
namespace skein::device {

struct scheduler_options {
  std::uint32_t slots = 1;                     ///< of the engine
  std::uint32_t max_tick_tokens = 512;         ///< of the engine
  std::uint32_t max_tick_rows = 64;            ///< of the engine
  std::size_t state_floats = 0;                ///< of the engine
  std::uint32_t prefill_chunk_tokens = 128;    ///< prefill tokens of a tick while others decode
  std::uint32_t waiting_max = 1024;            ///< requests in the queue; one more is rejected as overloaded
  std::uint32_t waiting_per_client_max = 256;  ///< of one client, likewise
  std::uint32_t turn_tokens = 256;  ///< tokens after which a sequence may have to give its slot to a waiting one
  std::uint32_t parked_max = 4096;  ///< sequences whose state may be copied out at a time
  std::size_t parked_bytes_max = std::size_t{1} << 30;  ///< of all states that are copied out
};

// ---- what the shell does with the engine before the tick, in order ----
struct start_slot {
  slot_id slot;
  const sampling::sampling_params* params;
};
struct copy_slot {
  slot_id from, to;
};
struct park_slot {
  slot_id slot;
  std::shared_ptr<engine::parked_sequence> to;
};
struct unpark_slot {
  slot_id slot;
  const sampling::sampling_params* params;
  std::shared_ptr<engine::parked_sequence> from;
};
using slot_command = std::variant<start_slot, copy_slot, park_slot, unpark_slot>;

/// One tick's worth of work. Parameters stay alive until the next call of the scheduler, buffers until the tick planned
/// after them was absorbed.
struct tick_work {
  std::vector<slot_command> commands;
  engine::tick_plan plan;
  [[nodiscard]] bool empty() const { return commands.empty() && plan.rows.empty(); }
};

/// What the scheduler knows about itself, for logs, health and tests.
struct scheduler_counts {
  std::uint32_t slots_used = 0, waiting = 0, parked = 0, requests = 0;
  std::size_t parked_bytes = 0;
  std::uint64_t prompt_tokens = 0, generated_tokens = 0, finished = 0, rejected = 0, cancelled = 0, preemptions = 0;
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
  void handle(shutdown&& message, steady_time now);

  /// Ends what is past its deadline. Cheap when nothing is.
  void expire(steady_time now);

  /// Admits, then plans the next tick. `congested`: io threads whose event queue is full; their requests rest.
  /// The result is valid until the next call. A plan with rows counts as submitted: the next but one absorb is its.
  [[nodiscard]] const tick_work& plan(steady_time now, std::span<const std::uint8_t> congested = {});
  /// The result of the oldest plan with rows that was not absorbed yet.
  void absorb(const engine::tick_result& result, steady_time now);
  /// The engine is gone and touches no buffer any more: nothing is planned, and end_lost() is due before any message is
  /// handled. Only the first reason counts.
  void lose_device(error why) noexcept;
  /// After lose_device(): every request ends; every later submit is rejected. Asks nothing of what an exception may
  /// have left half done. Where memory lacks it throws, and goes on from there when called again.
  void end_lost();

  /// Calls deliver(reply_to, events&&) for each io thread that has some, and forgets them.
  template <typename Deliver>
  void take_events(Deliver deliver) {
    for (std::uint32_t i = 0; i < outbox_.size(); ++i)
      if (!outbox_[i].items.empty()) deliver(i, std::exchange(outbox_[i], {}));
  }

  [[nodiscard]] bool lost() const { return lost_; }
  [[nodiscard]] const error& lost_why() const { return lost_why_; }
  /// Shut down, and every request has ended.
  [[nodiscard]] bool finished() const { return shutting_down_ && requests_.empty(); }
  /// When expire() has something to do; the far future if never.
  [[nodiscard]] steady_time next_deadline() const { return next_deadline_; }
  [[nodiscard]] scheduler_counts counts() const;
  /// States what must always hold (slots, queues and counters agree); for tests and idle moments.
  void self_check() const;

 private:
  struct request;
  struct sequence;
  class outside_state;
  struct row_reference {
    request_id id;
    std::uint32_t row;
  };
  struct planned_row {
    row_reference who;
    bool last_without_draw;
  };

  request* find(request_id id);
  void emit(const request& r, event e);
  void reject(const submit& message, error why);
  void admit(steady_time now);
  void place(sequence& s, steady_time now);
  void fork_rows(request& r);
  [[nodiscard]] bool lacks_memory(const request& r) const;
  [[nodiscard]] bool fits_outside(std::size_t more_states) const;
  void make_room();
  void park(sequence& s);
  void release(sequence& s);
  void finish(sequence& s, finish_cause cause);
  void finish_all(request& r, finish_cause cause);
  void forget(request& r);
  void enqueue(sequence& s);
  void leave_outside(sequence& s);
  void settle_fork(request& r);
  slot_id take_slot(sequence& s);
  void plan_decode(std::span<const std::uint8_t> congested);
  void plan_prefill(std::span<const std::uint8_t> congested);
  [[nodiscard]] std::uint32_t plan_prefill_row(sequence& s, std::uint32_t budget);
  void note_deadline(steady_time t);
  [[nodiscard]] bool resting(const sequence& s, std::span<const std::uint8_t> congested) const;
  [[nodiscard]] bool can_decode(const sequence& s) const;

  scheduler_options options_;
  std::uint32_t states_outside_ = 0;  // held by sequences
  std::uint32_t forks_to_come_ = 0;   // admitted requests of several rows, each of which may need one more
  std::unordered_map<request_id, std::unique_ptr<request>> requests_;
  fair_queue<row_reference> waiting_;
  std::vector<sequence*> slots_;  // [slots], nullptr: free
  std::vector<slot_id> free_slots_;
  std::uint32_t prefill_turn_ = 0;      // slot whose prompt goes first
  std::uint32_t decode_turn_ = 0;       // slot that decodes first, when not all fit into a tick
  std::uint32_t waiting_requests_ = 0;  // not admitted yet
  std::uint32_t parked_ = 0;
  tick_work work_;
  std::deque<std::vector<planned_row>> in_flight_;
  std::vector<std::vector<planned_row>> spare_plans_;
  // Buffers that queued commands may still use, with the number of the tick after which they may go.
  std::deque<std::pair<std::uint64_t, std::shared_ptr<engine::parked_sequence>>> retired_buffers_;
  std::uint64_t planned_ticks_ = 0, absorbed_ticks_ = 0;
  std::vector<events> outbox_;  // by io thread
  steady_time next_deadline_ = steady_time::max();
  steady_time shutdown_deadline_ = steady_time::max();
  bool shutting_down_ = false;
  bool lost_ = false;
  error lost_why_;
  scheduler_counts counts_;
};

}  // namespace skein::device
