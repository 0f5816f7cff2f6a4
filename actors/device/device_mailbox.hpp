#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "actors/byte_budget.hpp"
#include "actors/mailbox.hpp"
#include "base/clock.hpp"
#include "base/device_id.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "config/config.hpp"
#include "engine/engine.hpp"
#include "engine/prompt_parts.hpp"
#include "sampling/sampling_params.hpp"
#include "storage/records/records.hpp"

/// All messages to the device actor, and all its replies.
namespace skein::device {

using storage::state_buffer;
using storage::state_key;

/// The initial state of a sequence. Both members empty: the zero state.
struct beginning {
  state_buffer state;  ///< written into the slot before the first token
  state_key key;  ///< of `state`, if it has one: a slot that still holds this state is used instead. A request with
                  ///< a key and no state is rejected as unavailable if no slot holds the state any more
};

/// One of the states of a mixture.
struct weighted_beginning {
  beginning from;       ///< needs `state`: slots are not searched for the key
  float weight = 1.0f;  ///< not negative; normalized by the sum of all weights; 0: the state is left out
};

/// Requests a copy of row 0's state after `position` tokens of the prompt (1 .. its size). Best effort: answered
/// without a state above device_actor_options::copies_max and inside a chunk (engine::may_cut).
struct wanted_copy {
  state_key key;
  std::uint32_t position = 0;
};

/// Generates `rows` continuations of one prompt. Answered by admitted or rejected, then in each tick one token for each
/// row that sampled one, then one row_finished for every row. Ids are unique.
struct submit {
  request_id id = 0;
  device_id device = 0;        ///< the one that the message is sent to
  std::uint32_t reply_to = 0;  ///< index of the io thread that gets the events
  tenant_id tenant = default_tenant;
  std::string client;                      ///< account of the fair queue (key name or address)
  std::vector<token_id> prompt;            ///< at least one token, each below the vocabulary's size (checked by sender)
  std::vector<engine::prompt_part> parts;  ///< of the prompt, in order; empty: one part, written by the client
  std::vector<sampling::sampling_params> rows;  ///< one per row of `n`; at least one
  bool score_prompt = false;                    ///< also report log-probabilities of the prompt (echo with logprobs)
  std::uint32_t score_top = 0;                  ///< alternatives per prompt token
  steady_time queue_deadline{};                 ///< if not admitted by then: rejected with timeout
  steady_time total_deadline{};                 ///< if not finished by then: rows finish with cause timeout
  byte_budget::lease memory;                    ///< for this message; released with the request
  /// Counts the prompt's tokens as ticks feed them; may be null.
  std::shared_ptr<std::atomic<std::uint64_t>> fed;
  beginning from;                   ///< the prompt is fed after it
  std::vector<wanted_copy> copies;  ///< ascending positions; each answered once to the state_sink
  state_key settles_as;  ///< if set (one row only): when the row has ended, its slot waits for settle or cancel
  bool may_cut = false;  ///< with settles_as: fewer tokens than were sampled may be settled (stop strings), so a copy
                         ///< of the state after the prompt is worth its memory
  /// If not empty, replaces `from`: the prompt is fed to one sequence for each state, and every token is sampled from
  /// the weighted sum of their logits and fed to all. Rejected as unsupported with several rows or score_prompt, as
  /// too_large above mixture_max or the engine's limits, as invalid_argument if the weights have no positive finite
  /// sum. No state is copied or settled: such keys are answered with null.
  std::vector<weighted_beginning> mixture;
};

/// Decides the text of a row that has ended: its state becomes that of its beginning, its prompt, its first `sampled`
/// tokens and then `more`, fed at once. The state is then copied out and given to the state_sink under
/// submit::settles_as, and the slot may keep it until another request needs the slot. No effect if the id is unknown or
/// has no settles_as. After a cancel, and if the request ends before its admission, the state_sink gets null. May be
/// sent before row_finished, instead of cancel_row: row_finished(cancelled) follows at once. A second one is ignored.
struct settle {
  request_id id = 0;
  std::uint32_t sampled = 0;   ///< at most the number of reported tokens
  std::vector<token_id> more;  ///< each below the vocabulary's size (checked by sender)
};

/// Ends a request soon; row_finished(cancelled) follows for each running row. No effect if the id is unknown or done.
struct cancel {
  request_id id = 0;
};
/// Ends one row (its stop string was found); answered by row_finished(cancelled). No effect if it is unknown or done.
struct cancel_row {
  request_id id = 0;
  std::uint32_t row = 0;
};
/// The reader is slow: samples no more tokens for this request, and lets waiting requests take its slots.
struct pause {
  request_id id = 0;
};
/// The reader has caught up. No effect if the request is not paused.
struct resume {
  request_id id = 0;
};
/// Drops the settled states of this owner from all slots: the slots are cleared, with one slot_dropped each. No reply.
struct forget {
  storage::session_uid owner = 0;
};
/// Replaces the settings of the queue; those that are not live must be the same as before. Requests that already wait
/// stay in the queue. No reply.
struct change_limits {
  config::queue_settings queue;
};
/// Admits no more requests, lets running ones finish until `deadline`, then ends the rest with cause shutdown. Those
/// with settles_as may be settled for a second after it. Then the thread ends. A second one with an earlier deadline
/// shortens the wait.
struct shutdown {
  steady_time deadline{};
};

// Moving and destroying a variant takes a table of functions for each operation. These are compiled once, in
// device_mailbox.cpp, instead of in every file that sends or receives a message.
struct message : std::variant<submit, settle, cancel, cancel_row, pause, resume, forget, change_limits, shutdown> {
  using variant::variant;
  message(message&&) noexcept;
  message& operator=(message&&) noexcept;
  ~message();
};
using mailbox = bounded_mailbox<message>;

// ---- events to io threads: one message per io thread and tick, holding all events for its requests in order ----

/// The request has left the queue and has its slots; prefill starts.
struct admitted {
  request_id id = 0;
  std::chrono::microseconds queued{};
};
/// The request will not run: overloaded (too many waiting), timeout (in the queue), unavailable (shutting down, device
/// lost), too_large. No other event follows.
struct rejected {
  request_id id = 0;
  error why;
};
/// Log-probabilities of prompt tokens 1 .. n-1 in order; several events may be needed.
struct prompt_scored {
  request_id id = 0;
  std::vector<sampling::token_logprobs> scores;
};
/// One token of one row. `logprobs` is set if the row requests them.
struct token {
  request_id id = 0;
  std::uint32_t row = 0;
  std::uint32_t index = 0;  ///< of the generated token, from 0
  token_id id_of_token = no_token;
  std::unique_ptr<sampling::token_logprobs> logprobs;
};
enum class finish_cause : std::uint8_t {
  stop_id,
  budget,
  cancelled,
  timeout,
  shutdown,
  device_lost,
  not_finite,  ///< the model's logits are NaN or infinite
};
/// The row has ended; its slot is free or waits for settle. Its last token, if any, was reported before.
struct row_finished {
  request_id id = 0;
  std::uint32_t row = 0;
  finish_cause cause = finish_cause::cancelled;
};

struct event : std::variant<admitted, rejected, prompt_scored, token, row_finished> {
  using variant::variant;
  event(event&&) noexcept;
  event& operator=(event&&) noexcept;
  ~event();
};

/// Receives states; implemented by the persistence actor's mailbox, and by vectors in tests. Called on device threads;
/// must not block.
class state_sink {
 public:
  virtual ~state_sink() = default;
  /// A copy or a settled state; null: it will never be sent. Called once for every key of copies and settles_as.
  virtual void state_kept(const state_key& key, state_buffer state) = 0;
  /// A free slot of a device now holds this settled state, or no longer does. A submit that takes the slot drops its
  /// key too.
  virtual void slot_kept(const state_key& key, device_id device) = 0;
  virtual void slot_dropped(const state_key& key, device_id device) = 0;
};

/// The events of a tick for one io thread.
struct events {
  std::vector<event> items;
};

/// Receives events; implemented by the io threads' mailboxes, and by vectors in tests. Called on each device thread at
/// most once per io thread and tick; must not block. `to` is submit::reply_to.
class event_sink {
 public:
  virtual ~event_sink() = default;
  /// Events left in `batch` are discarded, and its memory is reused. If it throws, `batch` is unchanged.
  virtual void deliver(std::uint32_t to, events&& batch) = 0;
  /// Sets entry i to 1 if io thread i is behind with its events (limits.events_max); its requests then pause. The
  /// vector keeps its size between calls.
  virtual void congestion(std::vector<std::uint8_t>& by_io_thread) const = 0;
};

}  // namespace skein::device

extern template class skein::bounded_mailbox<skein::device::message>;
