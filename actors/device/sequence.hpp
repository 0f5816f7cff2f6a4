#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "actors/device/scheduler.hpp"

/// The scheduler's records of a request and its rows. Internal to the scheduler.
namespace skein::device {

/// A state that was copied out of the engine; counted while a sequence holds it. Its buffer may live longer, until no
/// queued command can access it.
class scheduler::outside_state {
 public:
  /// Allocates memory for this number of floats, which the engine first touches when it copies; 0: the engine
  /// allocates.
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
  bool queued = false;  // is in waiting_
  bool over = false;    // its end was reported
  std::optional<slot_id> slot;
  std::uint32_t fed = 0;              // prompt tokens planned so far
  std::uint32_t samples_planned = 0;  // at most max_tokens
  std::uint32_t sampled = 0;          // tokens sampled and reported
  std::uint32_t sampled_this_turn = 0;
  std::uint32_t in_flight = 0;            // rows planned and not absorbed
  std::uint64_t arrival = 0;              // number, in moves_, of the state written to its slot
  std::shared_ptr<outside_state> parked;  // set while the state is copied out; forked rows share one
};

/// The record of a request whose state is to be settled; it has one row. The steps: the row runs; it ends and holds its
/// slot (or is parked) until the settle message arrives; once no row is in flight, the text replaces the prompt; the
/// part that the state has not processed is fed like a prompt; then the state is copied out.
struct scheduler::settlement {
  std::vector<token_id> sampled;  // all sampled tokens, also those after the end: the state may include them
  std::shared_ptr<outside_state> prompt_end;  // the state after the prompt, for texts that were cut
  std::optional<settle> text;                 // the settle message
  bool feeding = false;                       // the text has replaced the prompt
  bool keeps_slot = true;                     // false: a forget message arrived
};

struct scheduler::request {
  submit message;
  fair_queue<row_reference>::account* payer = nullptr;  // its client's account, until the request is erased
  steady_time arrived{};
  bool admitted = false;
  bool forked = false;  // rows 1.. have their state; true from the start for a single row, never for a mixture
  bool paused = false;
  bool fork_to_come = false;            // counted in forks_to_come_
  std::uint32_t next_copy = 0;          // in message.copies: earlier ones were answered or promised
  std::optional<settlement> to_settle;  // until its key is answered
  std::uint32_t rows_left = 0;
  std::vector<sequence> rows;

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
  [[nodiscard]] std::uint32_t feed_limit() const { return forked ? prompt_tokens() : prompt_tokens() - 1; }
  [[nodiscard]] bool settling() const { return to_settle && to_settle->text; }
  [[nodiscard]] bool feeds_text() const { return to_settle && to_settle->feeding; }
};

}  // namespace skein::device
