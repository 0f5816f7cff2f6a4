#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "actors/device/scheduler_options.hpp"
#include "actors/device/sequence.hpp"
#include "actors/device/slot_table.hpp"
#include "actors/device/state_handout.hpp"
#include "engine/engine.hpp"
#include "engine/prompt_parts.hpp"

namespace skein::device {

/// A row of a planned tick.
struct planned_row {
  row_reference who;
  bool last_without_sample;
};
using planned_rows = std::vector<planned_row>;

/// Decides which sequences in slots decode or prefill in the next tick, and how much, and remembers the rows of the
/// ticks in flight. Each tick decodes one token for every sequence that can, then fills up with prefill chunks, taking
/// turns among the prompts.
///
/// If the engine has chunks, the prompt alone determines which tokens form a chunk (engine/prompt_parts.hpp): a plan
/// holds whole chunks, no copy is taken inside a chunk, and decode rows leave room for one chunk. So answers do not
/// depend on batch composition.
///
/// A mixture of states is one request with one sequence for each state. Each feeds all but the last token of the prompt
/// independently; from then on they share their ticks and sample as one.
///
/// A sequence whose state has not arrived plans no row while others do. If there are no others, the engine may wait for
/// it.
class row_planner {
 public:
  /// The arguments outlive it; rows are added to `plan`.
  row_planner(const scheduler_options& options, const slot_table& slots, state_handout& handout,
              engine::tick_plan& plan)
      : options_(options), slots_(slots), handout_(handout), plan_(plan) {}

  /// Plans the rows of a tick. `congested`: io threads with a full event queue; their requests pause. A plan with rows
  /// is in flight until its rows are taken.
  void plan(std::span<const std::uint8_t> congested);
  /// The rows of the oldest tick in flight, which is not in flight any more.
  [[nodiscard]] planned_rows take_oldest();
  /// Returns the memory of take_oldest().
  void reuse(planned_rows rows) { spare_.push_back(std::move(rows)); }
  /// Oldest first; two at most.
  [[nodiscard]] std::span<const planned_rows> in_flight() const { return in_flight_; }
  void forget_ticks() { in_flight_.clear(); }

 private:
  /// Whether sequences whose state has not arrived get rows.
  enum class arrivals : std::uint8_t { skipped, awaited };
  /// What this pass over the slots must respect.
  struct terms {
    std::span<const std::uint8_t> congested;
    arrivals of_states;
  };

  void plan_pass(const terms& now);
  void plan_decode(const terms& now);
  void plan_mixture(request_record& r);
  void plan_prefill(const terms& now);
  [[nodiscard]] std::uint32_t plan_prefill_row(sequence& s, std::uint32_t budget);
  void plan_row(sequence& s, const engine::row& row, bool last_without_sample);
  [[nodiscard]] engine::prompt_piece next_piece(const sequence& s, std::uint32_t budget) const;
  [[nodiscard]] bool awaits_token(const sequence& s) const;
  [[nodiscard]] bool awaits_chunk(const terms& now) const;
  [[nodiscard]] bool rests(const sequence& s, const terms& now) const;

  const scheduler_options& options_;
  const slot_table& slots_;
  state_handout& handout_;
  engine::tick_plan& plan_;
  std::vector<planned_rows> in_flight_, spare_;
  std::uint32_t prefill_turn_ = 0;  // slot that prefills first
  std::uint32_t decode_turn_ = 0;   // slot that decodes first, if not all fit into a tick
};

}  // namespace skein::device
