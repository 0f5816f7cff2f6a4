#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/engine.hpp"

namespace skein::engine {

/// The rules of the rows on a device that does not know them: masks go out with a tick, and its tokens come back. A row
/// with a rule samples at most once in the ticks in flight (engine_info::rules_wait).
class slot_rules {
 public:
  slot_rules(std::uint32_t slots, std::uint32_t vocab, std::uint32_t rows_max)
      : words_((vocab + 31) / 32), rows_max_(rows_max), rules_(slots) {}

  void start(slot_id slot, const sampling::sampling_params& params);
  /// `to` keeps its own rule, at the position of that of `from`.
  void copy(slot_id from, slot_id to);
  /// Null: the slot has none.
  [[nodiscard]] std::shared_ptr<const sampling::token_rule> park(slot_id slot);
  void unpark(slot_id slot, const sampling::sampling_params& params,
              const std::shared_ptr<const sampling::token_rule>& parked);

  void begin_tick(std::uint64_t tick);
  /// The mask of a row that samples in this tick, until the next one begins; null: all tokens.
  [[nodiscard]] const std::uint32_t* mask(const row& r);
  /// The tokens of the oldest tick are known. A text that is complete, or stuck, ends its row.
  void end_tick(tick_result& done);

 private:
  class tracked;
  struct sampling_row {
    slot_id slot;
    std::shared_ptr<tracked> rule;
  };

  std::size_t words_, rows_max_;
  std::vector<std::shared_ptr<tracked>> rules_;         // by slot
  std::array<std::vector<sampling_row>, 4> in_flight_;  // by number of the tick; more than there are in flight
  std::uint64_t tick_ = 0;
  std::vector<std::uint32_t> masks_;  // of the current tick; empty until there is a rule
};

}  // namespace skein::engine
