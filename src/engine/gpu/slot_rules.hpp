#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.hpp"
#include "kernels/gpu/types/sampler_types.hpp"

namespace skein::engine {

/// The rules of the rows on a device that does not know them: masks go out with a tick, and its tokens come back. A row
/// with a rule samples at most once in the ticks in flight (engine_info::rules_wait). The tokens that a rule forces
/// after a sampled one are known on the host only: it gives them to the device's sampler, and feeds them like a prompt.
class slot_rules {
 public:
  explicit slot_rules(const engine_info& info);

  void start(slot_id slot, const sampling::sampling_params& params);
  /// The last tokens stay.
  void restart(slot_id slot, const sampling::sampling_params& params);
  /// `to` keeps its own rule, at the position of that of `from`.
  void copy(slot_id from, slot_id to);
  /// Null: the slot has none.
  [[nodiscard]] std::shared_ptr<const sampling::token_rule> park(slot_id slot);
  void unpark(slot_id slot, const sampling::sampling_params& params, const parked_sequence& parked);

  /// The tokens that a decode row of the slot feeds. Empty: that is the last token on the device, if the slot is not
  /// frozen.
  [[nodiscard]] std::span<const token_id> run(slot_id slot) const;
  /// All tokens that the slot has not fed, if some of them were forced.
  [[nodiscard]] std::span<const token_id> last_tokens(slot_id slot) const { return slots_[slot].last_tokens; }
  /// The first `count` of them are fed.
  void drop_last_tokens(slot_id slot, std::size_t count);

  void begin_tick(std::uint64_t tick);
  /// The mask of a row that samples in this tick, until the next one begins; null: all tokens.
  [[nodiscard]] const std::uint32_t* mask(const row& r);
  /// The tokens of the oldest tick are known. A text that is complete, or stuck, ends its row. Returns the tokens that
  /// the device's samplers must take before the next tick; valid until the next call.
  [[nodiscard]] std::span<const kernels::gpu::forced_run> end_tick(tick_result& done);

 private:
  class tracked;
  struct slot_entry {
    std::shared_ptr<tracked> rule;
    std::vector<token_id> stop_ids;
    std::uint32_t generated_max = 0;  // where the budget is spent, including sampled_before
    bool logprobs = false;
    std::uint32_t top_logprobs = 0;
    std::vector<token_id> last_tokens;  // if the rule has forced some: the sampled one and these
    bool ended = false;                 // nothing is sampled after them
  };
  struct sampling_row {
    slot_id slot;
    std::shared_ptr<tracked> rule;
    bool certain;  // there is only one token, and its log-probability is wanted
    std::uint32_t top_logprobs;
  };
  [[nodiscard]] std::shared_ptr<tracked> copied(slot_id slot);
  void force(slot_id slot, row_result& out);

  const std::size_t words_, rows_max_;
  const std::uint32_t vocab_, forced_max_;
  std::vector<slot_entry> slots_;
  std::array<std::vector<sampling_row>, 4> in_flight_;  // by number of the tick; more than there are in flight
  std::uint64_t tick_ = 0;
  std::vector<std::uint32_t> masks_;  // of the current tick; empty until there is a rule
  std::vector<kernels::gpu::forced_run> runs_;
};

}  // namespace skein::engine
