#pragma once
#include <cstdint>
#include <vector>

#include "actors/device/request_book.hpp"
#include "actors/device/scheduler_options.hpp"
#include "actors/device/sequence.hpp"
#include "actors/device/slot_table.hpp"
#include "actors/device/state_handout.hpp"
#include "base/clock.hpp"

namespace skein::device {

/// Decides which sequences have a slot: admits requests, parks sequences for others, and forks requests of several
/// rows.
///
/// Rows of one request (`n`) share their prompt: row 0 prefills all but the last token, the other rows copy its state,
/// then each row feeds the last token itself and samples.
///
/// The bytes of states outside the engine are limited. No sequence is parked above the limit. A request of several
/// rows, which may have to keep a copy for rows without a slot, is admitted only with room for one, or if no state is
/// outside, so that every request can run: a single state may exceed the limit. While such a request waits for room, no
/// sequence is parked for a new request behind it, so that the number of states outside decreases.
///
/// The sequences of a mixture get their slots together and are parked and restored together.
class placement {
 public:
  /// The arguments outlive it.
  placement(const scheduler_options& options, slot_table& slots, request_book& requests, state_handout& handout)
      : options_(options), slots_(slots), requests_(requests), handout_(handout) {}

  /// Copies the state of row 0 for the other rows, once row 0 has fed the shared prompt.
  void fork_if_ready(request_record& r);
  /// Gives slots to waiting sequences until none gets one.
  void assign(steady_time now);

  void add_to(scheduler_counts& counts) const { counts.preemptions = preemptions_; }

 private:
  void assign_once(steady_time now);
  void place(sequence& s, steady_time now);
  void fork_rows(request_record& r);
  [[nodiscard]] bool lacks_beginning(const request_record& r) const;
  [[nodiscard]] bool lacks_memory(const request_record& r) const;
  [[nodiscard]] bool lacks_state(const request_record& r, const sequence& s) const;
  bool make_room(const request_record& waits);
  [[nodiscard]] bool can_park(const sequence& s) const;

  const scheduler_options& options_;
  slot_table& slots_;
  request_book& requests_;
  state_handout& handout_;
  std::vector<const sequence*> put_back_;  // by assign_once(); empty between calls
  std::uint64_t preemptions_ = 0;
};

}  // namespace skein::device
