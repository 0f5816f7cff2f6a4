#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "actors/device/device_mailbox.hpp"
#include "actors/device/fair_queue.hpp"
#include "actors/device/slots/outside_states.hpp"
#include "actors/device/slots/sequence_place.hpp"
#include "base/clock.hpp"
#include "engine/engine.hpp"

/// The scheduler's records of a request and its rows. Each record says where it is in its life with one enumeration,
/// whose changes are checked.
namespace skein::device {

struct request_record;

struct row_reference {
  request_id id;
  std::uint32_t row;
};

/// What a row does, in this order. Rows whose state is not settled stop at `ended`.
enum class row_stage : std::uint8_t {
  answering,  ///< it feeds the prompt and samples
  ended,      ///< its end was reported; a state to be settled stays where it is until the settle message arrives
  decided,    ///< the text is decided; rows in flight may still change the state
  feeding     ///< the text has replaced the prompt: the part that the state has not processed is fed like a prompt
};

struct sequence {
  request_record* owner = nullptr;
  std::uint32_t row = 0;
  sequence_place place;
  std::uint32_t fed = 0;              // prompt tokens planned so far
  std::uint32_t samples_planned = 0;  // rows, at most max_tokens
  std::uint32_t sampled = 0;          // tokens sampled and reported
  std::uint32_t sampled_this_turn = 0;
  std::uint32_t in_flight = 0;  // rows planned and not absorbed
  std::uint64_t arrival = 0;    // number, in state_moves, of the state written to its slot

  [[nodiscard]] row_stage stage() const { return stage_; }
  /// Enters the next stage.
  void advance(row_stage next);
  [[nodiscard]] bool over() const { return stage_ != row_stage::answering; }
  /// Its text is decided.
  [[nodiscard]] bool settling() const { return stage_ == row_stage::decided || stage_ == row_stage::feeding; }
  [[nodiscard]] bool feeds_text() const { return stage_ == row_stage::feeding; }

  /// Its time is up, and it ends with the rows in flight.
  [[nodiscard]] bool ends_soon() const;

  /// Whether it may sample another token.
  [[nodiscard]] bool can_decode() const;
  /// Whether there are tokens to feed, of the prompt or of the text that replaces it.
  [[nodiscard]] bool can_prefill() const;

 private:
  row_stage stage_ = row_stage::answering;
};

/// The record of a request whose state is to be settled; it has one row, whose stage says how far that is.
struct settlement {
  std::vector<token_id> sampled;  // all sampled tokens, also those after the end: the state may include them
  std::uint32_t unfed = 0;        // the last of them, which the state does not include
  std::shared_ptr<outside_state> prompt_end;  // the state after the prompt, for texts that were cut
  settle text;                                // the settle message, once the row's text is decided
  bool keeps_slot = true;                     // false: a forget message arrived
  std::optional<finish_cause> ends_with;      // its time is up: it ends once the rows in flight are over

  /// Takes the tokens of a tick.
  void take(const engine::row_result& row);
};

/// Where a request is in its life.
enum class request_phase : std::uint8_t {
  queued,   ///< not admitted
  sharing,  ///< of several rows: row 0 feeds the prompt that all share, and the others have no state yet
  running,  ///< each row has its own state; a mixture and a single row are there from their admission
  ended     ///< every row has left
};

struct request_record {
  submit message;
  fair_queue<row_reference>::account* payer = nullptr;  // its client's account, until the request is erased
  steady_time arrived{};
  bool paused = false;                  // its reader is slow
  std::uint32_t next_copy = 0;          // in message.copies: earlier ones were answered or promised
  std::optional<settlement> to_settle;  // until its key is answered
  std::uint32_t rows_left = 0;
  std::vector<sequence> rows;

  [[nodiscard]] request_phase phase() const { return phase_; }
  void enter(request_phase next);
  [[nodiscard]] bool admitted() const { return phase_ != request_phase::queued; }
  /// Each row feeds its own tokens. Never true for a mixture.
  [[nodiscard]] bool forked() const { return !mixes() && (rows.size() == 1 || phase_ == request_phase::running); }

  [[nodiscard]] std::uint32_t prompt_tokens() const { return static_cast<std::uint32_t>(message.prompt.size()); }
  /// Its sequences are the states of a mixture; only the first one reports tokens.
  [[nodiscard]] bool mixes() const { return !message.mixture.empty(); }
  [[nodiscard]] bool answers(const sequence& s) const { return s.row == 0 || !mixes(); }
  /// The number of slots that it needs at the same time.
  [[nodiscard]] std::size_t slots_at_once() const { return mixes() ? rows.size() : 1; }
  [[nodiscard]] const sampling::sampling_params& params(const sequence& s) const {
    return message.rows[mixes() ? 0 : s.row];
  }
  [[nodiscard]] beginning& from(const sequence& s) { return mixes() ? message.mixture[s.row].from : message.from; }
  /// The number of prompt tokens that a row may feed now: all but the last until the rows have forked. A mixture feeds
  /// the last one in a tick of all its rows.
  [[nodiscard]] std::uint32_t feed_limit() const { return forked() ? prompt_tokens() : prompt_tokens() - 1; }

 private:
  request_phase phase_ = request_phase::queued;
};

}  // namespace skein::device
