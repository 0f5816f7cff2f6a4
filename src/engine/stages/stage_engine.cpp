#include "engine/stages/stage_engine.hpp"

#include <utility>

#include "base/check.hpp"
#include "engine/host_engine.hpp"
#include "engine/stages/sequence_slot.hpp"
#include "engine/stages/stage_backend.hpp"

namespace skein::engine {

memory_plan plan_stage_engine(memory_plan of_stages, const stage_engine_options& options) {
  of_stages.activation_bytes += std::size_t{options.limits.max_logit_rows} * options.vocab * sizeof(float);
  of_stages.slot_bytes += sequence_slot::planned_bytes(options.vocab);
  return of_stages;
}

engine_info describe_stage_engine(const kernels::stages& stages, const stage_engine_options& options) {
  const kernels::stage_limits& limits = options.limits;
  engine_info info;
  info.device = options.device;
  info.model_identity = options.model_identity;
  info.weight_type = options.weight_type;
  info.vocab = options.vocab;
  info.slots = limits.slots;
  info.max_tick_tokens = limits.max_rows;
  info.max_tick_rows = options.max_tick_rows;
  info.row_max = {.logit_bias_max = ~0u, .stop_ids_max = ~0u};  // the samplers allocate them per row
  check(stages.state_floats() == options.state.floats(), "stages with states of another layout");
  info.state = options.state;
  info.constrains = true;
  info.forced_max = options.forced_max;
  info.memory = plan_stage_engine(stages.memory(), options);
  return info;
}

std::unique_ptr<engine> make_stage_engine(std::unique_ptr<kernels::stages> stages,
                                          const stage_engine_options& options) {
  engine_info info = describe_stage_engine(*stages, options);
  return make_host_engine(std::move(info), std::make_unique<stage_backend>(std::move(stages), options));
}

}  // namespace skein::engine
