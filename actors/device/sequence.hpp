#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "actors/device/scheduler.hpp"

/// What the scheduler knows of a request and of its rows. For the scheduler's own files.
namespace skein::device {

/// A state that was copied out of the engine; counts while sequences hold it. Its buffer may live a little longer,
/// until no queued command can touch it.
class scheduler::outside_state {
 public:
  /// Memory for so many floats is taken now, and first touched by the engine when it copies; 0: taken there too.
  outside_state(std::uint32_t& count, std::size_t floats)
      : buffer(std::make_shared<engine::parked_sequence>()), count_(count) {
    buffer->state.reserve(floats);
    ++count_;
  }
  ~outside_state() { --count_; }
  outside_state(const outside_state&) = delete;  // would count twice
  outside_state& operator=(const outside_state&) = delete;

  const std::shared_ptr<engine::parked_sequence> buffer;

 private:
  std::uint32_t& count_;
};

struct scheduler::sequence {
  request* owner = nullptr;
  std::uint32_t row = 0;
  bool queued = false;  // stands in waiting_
  bool over = false;    // its end was reported
  std::optional<slot_id> slot;
  std::uint32_t fed = 0;            // prompt tokens planned so far
  std::uint32_t draws_planned = 0;  // at most max_tokens
  std::uint32_t drawn = 0;          // reported
  std::uint32_t drawn_this_turn = 0;
  std::uint32_t in_flight = 0;            // rows planned and not absorbed
  std::uint64_t arrival = 0;              // of the state that was brought into its slot, by moves_
  std::shared_ptr<outside_state> parked;  // set while the state is copied out; rows that forked share one
};

/// What is kept of a request whose state shall be settled; it has one row. Its life: the row runs; it is over and holds
/// its slot (or is parked) until the settle comes; then, with no row of it in flight, the text is known and takes the
/// prompt's place; what the state lacks of it is fed like a prompt; then the state is copied out.
struct scheduler::settlement {
  std::vector<token_id> drawn;                // all draws, those after the end too: the state may have swallowed them
  std::shared_ptr<outside_state> prompt_end;  // the state after the prompt, for texts that were cut
  std::optional<settle> text;                 // as it was decided
  bool feeding = false;                       // the text stands in the prompt's place
  bool keeps_slot = true;                     // nobody wants it to be forgotten
};

struct scheduler::request {
  submit message;
  fair_queue<row_reference>::account* payer = nullptr;  // of its client, until it is erased
  steady_time arrived{};
  bool admitted = false;
  bool forked = false;  // rows 1.. have their state; true from the start for a single row, never for a mixture
  bool paused = false;
  bool fork_to_come = false;            // counted in forks_to_come_
  std::uint32_t next_copy = 0;          // of message.copies: those before it were answered, or are promised
  std::optional<settlement> to_settle;  // while its key waits for an answer
  std::uint32_t rows_left = 0;
  std::vector<sequence> rows;

  [[nodiscard]] std::uint32_t prompt_tokens() const { return static_cast<std::uint32_t>(message.prompt.size()); }
  /// Its sequences are the states of a mixture; only the first answers.
  [[nodiscard]] bool mixes() const { return !message.mixture.empty(); }
  [[nodiscard]] bool answers(const sequence& s) const { return s.row == 0 || !mixes(); }
  /// How many slots it must get at a time.
  [[nodiscard]] std::size_t slots_at_once() const { return mixes() ? rows.size() : 1; }
  [[nodiscard]] const sampling::sampling_params& params(const sequence& s) const {
    return message.rows[mixes() ? 0 : s.row];
  }
  [[nodiscard]] beginning& from(const sequence& s) { return mixes() ? message.mixture[s.row].from : message.from; }
  /// How much of the prompt a row may feed now: all but the last token until the rows have forked. A mixture feeds that
  /// one in a tick of all.
  [[nodiscard]] std::uint32_t feed_limit() const { return forked ? prompt_tokens() : prompt_tokens() - 1; }
  [[nodiscard]] bool settling() const { return to_settle && to_settle->text; }
  [[nodiscard]] bool feeds_text() const { return to_settle && to_settle->feeding; }
};

}  // namespace skein::device
