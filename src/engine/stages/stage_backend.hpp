#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/backend.hpp"
#include "engine/stages/group_mixer.hpp"
#include "engine/stages/sequence_slot.hpp"
#include "engine/stages/stage_engine.hpp"
#include "kernels/stages.hpp"

namespace skein::engine {

/// Ticks over the stages of one model. A tick has three parts:
///   pack   the tokens that the rows feed, back to back, and the list of positions whose logits are needed;
///          rows of frozen slots are left out, which does not affect the others (stages.hpp, promise 2)
///   run    the layer recipe over the packed tokens
///   read   the head for these positions, in pieces, and the sampling, scores and copies of each piece in parallel
class stage_backend : public backend {
 public:
  stage_backend(std::unique_ptr<kernels::stages> stages, const stage_engine_options& shape);

  void start(slot_id slot, const sampling::sampling_params& params) override;
  void restart_sampler(slot_id slot, const sampling::sampling_params& params) override;
  void copy_state(slot_id from, slot_id to) override;
  void clear(slot_id slot) override;
  [[nodiscard]] result<void> park(slot_id slot, parked_sequence& out) override;
  [[nodiscard]] result<void> unpark(slot_id slot, const sampling::sampling_params& params,
                                    const parked_sequence& in) override;
  [[nodiscard]] result<void> write_state(slot_id slot, const model::state_view& state) override;
  [[nodiscard]] result<void> read_state(slot_id slot, model::state_value& out) override;
  /// Computes the whole tick.
  [[nodiscard]] result<void> launch(const tick_plan& plan, tick_result& out) override;
  [[nodiscard]] result<void> complete(const tick_plan&, tick_result&) override { return {}; }
  [[nodiscard]] result<row_result> sample(slot_id slot, std::span<const std::uint32_t> allowed) override;

 private:
  // A position of a row whose logits are needed.
  struct wanted_position {
    std::uint32_t row;       // index in the plan
    std::uint32_t position;  // within the row's tokens
    bool last;               // the row's last position
    bool samples;            // a token is sampled from it, now or by draw()
  };

  [[nodiscard]] result<void> run(const tick_plan& plan, std::vector<row_result>& results);
  void pack_row(const tick_plan& plan, std::uint32_t index, row_result& out);
  [[nodiscard]] bool pack_last_tokens(sequence_slot& slot, const row& r, row_result& out);
  void force(sequence_slot& slot, row_result& out) const;
  void want_logits(const row& r, std::uint32_t index, std::uint32_t tokens, bool samples, row_result& out);
  void read_logits(const tick_plan& plan, const kernels::batch& batch, std::vector<row_result>& results);
  void use_logits(const tick_plan& plan, const wanted_position& wanted, std::span<float> logits, row_result& out);
  void sample_groups(const tick_plan& plan, std::vector<row_result>& results);
  [[nodiscard]] std::span<float> logits_row(std::size_t i) { return std::span(logits_).subspan(i * vocab_, vocab_); }

  void write_into(slot_id slot, const model::state_view& state);

  const std::unique_ptr<kernels::stages> stages_;
  const model::state_format state_;  // fp32
  const std::uint32_t layers_;
  const std::uint32_t vocab_;
  const std::uint32_t max_logit_rows_, max_tick_tokens_, forced_max_;
  std::vector<sequence_slot> slots_;

  // Of the current tick; members, so that the next one does not allocate.
  group_mixer groups_;
  std::uint32_t room_ = 0;  // for tokens of runs beyond those planned
  std::vector<token_id> tokens_;
  std::vector<kernels::sequence_run> runs_;
  std::vector<wanted_position> wanted_;
  std::vector<std::uint32_t> wanted_rows_;  // rows of the batch, parallel to wanted_
  std::vector<float> logits_;               // [max_logit_rows, vocab]
  model::state_value converted_;            // a state that came in other types
};

}  // namespace skein::engine
