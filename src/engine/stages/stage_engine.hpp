#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "engine/engine.hpp"
#include "kernels/stages.hpp"

namespace skein::engine {

struct stage_engine_options {
  std::string device = "cpu";
  std::string model_identity;
  std::string weight_type;
  model::state_layout state;  ///< of the stages, whose states are fp32
  std::uint32_t layers = 0, vocab = 0;
  std::uint32_t max_tick_rows = 64;
  std::uint32_t forced_max = usual_forced_max;  ///< engine_info::forced_max; 0: every token has a tick of its own
  kernels::stage_limits limits;                 ///< limits of the stages; max_rows is the token limit of a tick
};

/// An engine over any stages: CPU, reference or those of a test.
[[nodiscard]] std::unique_ptr<engine> make_stage_engine(std::unique_ptr<kernels::stages> stages,
                                                        const stage_engine_options& options);

/// The memory of an engine over stages that use `of_stages`, with logits and samplers.
[[nodiscard]] memory_plan plan_stage_engine(memory_plan of_stages, const stage_engine_options& options);

/// The engine_info of make_stage_engine's engine.
[[nodiscard]] engine_info describe_stage_engine(const kernels::stages& stages, const stage_engine_options& options);

}  // namespace skein::engine
