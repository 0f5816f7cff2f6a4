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
#include "base/error.hpp"
#include "base/ids.hpp"
#include "engine/engine.hpp"
#include "engine/prompt_parts.hpp"
#include "sampling/sampling_params.hpp"
#include "storage/records.hpp"

/// Everything the device actor can be told, and everything it answers.
namespace skein::device {

using storage::state_buffer;
using storage::state_key;

/// Where a sequence begins. All nothing: the zero state.
struct beginning {
  state_buffer state;  ///< written into the slot before the first token
  state_key key;       ///< of `state`, if it has one: a slot that still holds it is taken in its place. With a key and
                       ///< no state a request is rejected as unavailable where no slot holds it any more
};

/// One of the states of a mixture.
struct weighted_beginning {
  beginning from;       ///< a key without its state is not looked for in slots
  float weight = 1.0f;  ///< its share; the shares' sum counts as 1. Not negative; with 0 it is left out
};

/// A copy of row 0's state is wanted after so many tokens of the prompt: 1 .. its size. Best effort: above
/// device_actor_options::copies_max, and inside a chunk (engine::may_cut), it is answered without a state.
struct wanted_copy {
  state_key key;
  std::uint32_t position = 0;
};

/// Generate `rows` continuations of one prompt. Answered by admitted or rejected, then tokens once a tick for each row
/// that drew one, then one row_finished for every row. An id is used once.
struct submit {
  request_id id = 0;
  std::uint32_t reply_to = 0;  ///< index of the io thread that gets the events
  tenant_id tenant = default_tenant;
  std::string client;                      ///< whose fair share this counts to (key name or address)
  std::vector<token_id> prompt;            ///< at least one token, each below the vocabulary's size (checked by sender)
  std::vector<engine::prompt_part> parts;  ///< of the prompt, one after another; empty: a client brought all of it
  std::vector<sampling::sampling_params> rows;  ///< one per row of `n`; at least one
  bool score_prompt = false;                    ///< also report log-probabilities of the prompt (echo with logprobs)
  std::uint32_t score_top = 0;                  ///< alternatives per prompt token
  steady_time queue_deadline{};                 ///< not admitted by then: rejected with timeout
  steady_time total_deadline{};                 ///< not finished by then: rows finish with cause timeout
  byte_budget::lease memory;                    ///< of what this holds; goes with the request
  /// Where the prompt's tokens are counted as ticks take them; may be null.
  std::shared_ptr<std::atomic<std::uint64_t>> fed;
  beginning from;                   ///< the prompt comes after it
  std::vector<wanted_copy> copies;  ///< ascending positions; each answered once to the state_sink
  state_key settles_as;  ///< if set (one row only): when the row is over, its slot waits for settle or cancel
  bool may_cut = false;  ///< with settles_as: fewer tokens than were drawn may be settled (stop strings), so that a
                         ///< copy of the state after the prompt is worth its memory
  /// If not empty, in place of `from`: the prompt is fed to as many sequences as there are beginnings, and every token
  /// is drawn from the weighted sum of their logits and fed to all. One row, and nothing is scored, else it is rejected
  /// as unsupported; too many for the engine or above mixture_max: too_large; weights without a sum: invalid_argument.
  /// Nothing is copied or settled: such keys are answered with null.
  std::vector<weighted_beginning> mixture;
};

/// The text of a row that is over is decided: its state shall be its beginning, its prompt, its first `drawn` tokens
/// and then `more`, fed at once. It is then copied out and given to the state_sink under submit::settles_as, and the
/// slot may keep it until others need the slot. Harmless for an id that is unknown or has no settles_as; a cancel
/// answers the state_sink with null, as the end of the request before its admission does. May come before row_finished,
/// in place of cancel_row: row_finished(cancelled) follows at once. A second one is ignored.
struct settle {
  request_id id = 0;
  std::uint32_t drawn = 0;     ///< at most as many as were reported
  std::vector<token_id> more;  ///< each below the vocabulary's size (checked by sender)
};

/// Stop soon; row_finished(cancelled) follows for each row that still runs. Harmless for an id that is unknown or done.
struct cancel {
  request_id id = 0;
};
/// Stop one row (its stop string was seen). Harmless when unknown or done; answered by row_finished(cancelled).
struct cancel_row {
  request_id id = 0;
  std::uint32_t row = 0;
};
/// The reader is slow: draw no more tokens for this request, and give its slots to others if they wait.
struct pause {
  request_id id = 0;
};
/// The reader caught up. Harmless when not paused.
struct resume {
  request_id id = 0;
};
/// Keep no settled state of this owner in any slot: its slots are cleared, each told by slot_dropped. Not answered.
struct forget {
  storage::session_uid owner = 0;
};
/// From now on these limits count. Who waits already may stay. Not answered.
struct change_limits {
  std::uint32_t waiting_max = 1024;
  std::uint32_t waiting_per_client_max = 256;
  std::uint32_t turn_tokens = 256;
  std::uint32_t parked_max = 4096;
  std::size_t parked_bytes_max = std::size_t{1} << 30;
};
/// Admit nothing new; finish what runs until `deadline`, then finish the rest with cause shutdown; then the thread
/// ends. A second one with an earlier deadline shortens the wait.
struct shutdown {
  steady_time deadline{};
};

using message = std::variant<submit, settle, cancel, cancel_row, pause, resume, forget, change_limits, shutdown>;
using mailbox = bounded_mailbox<message>;

// ---- events to io threads: one message per io thread and tick, holding all events for its requests in order ----

/// The request left the queue and has its slots; prefill begins.
struct admitted {
  request_id id = 0;
  std::chrono::microseconds queued{};
};
/// The request will not run: overloaded (too many waiting), timeout (in the queue), unavailable (shutting down, device
/// lost), too_large. Nothing follows.
struct rejected {
  request_id id = 0;
  error why;
};
/// Log-probabilities of prompt tokens 1 .. n-1 in order; several events may be needed.
struct prompt_scored {
  request_id id = 0;
  std::vector<sampling::token_logprobs> scores;
};
/// One token of one row. `logprobs` is set when the row asks for them.
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
  not_finite,  ///< the model gave logits that are NaN or infinite
};
/// The row is over and its slot is free, or waits for settle. Its last token, if any, was reported before.
struct row_finished {
  request_id id = 0;
  std::uint32_t row = 0;
  finish_cause cause = finish_cause::cancelled;
};

using event = std::variant<admitted, rejected, prompt_scored, token, row_finished>;

/// Where states go; implemented by the persistence actor's mailbox, and by vectors in tests. Called on the device
/// thread; must not block.
class state_sink {
 public:
  virtual ~state_sink() = default;
  /// A copy or a settled state; null: it will not come. Once for every key of copies and settles_as.
  virtual void state_kept(const state_key& key, state_buffer state) = 0;
  /// A free slot still holds this settled state, or no more. A key that is taken up by a submit is dropped.
  virtual void slot_kept(const state_key& key) = 0;
  virtual void slot_dropped(const state_key& key) = 0;
};

/// What the device actor hands to an io thread after a tick.
struct events {
  std::vector<event> items;
};

/// Where events go; implemented by the io threads' mailboxes, and by vectors in tests. Called on the device thread once
/// per io thread and tick at most; must not block. `to` is submit::reply_to.
class event_sink {
 public:
  virtual ~event_sink() = default;
  /// What it leaves in `batch` is forgotten, and its memory used again.
  virtual void deliver(std::uint32_t to, events&& batch) = 0;
  /// Sets entry i to 1 where io thread i is behind with its events (limits.events_max); its requests then rest. The
  /// vector keeps its size between calls.
  virtual void congestion(std::vector<std::uint8_t>& by_io_thread) const = 0;
};

}  // namespace skein::device
