#include "engine/stages/cpu_engine.hpp"

#include <algorithm>
#include <utility>

#include "engine/stages/stage_engine.hpp"
#include "kernels/make_stages.hpp"

namespace skein::engine {
namespace {

// Rows of one head call: enough to read the head matrix once for many sequences, and at a vocabulary of 65536 no more
// than 16 MiB of logits.
constexpr std::uint32_t logit_rows_of_cpu = 64;

/// The options of the stages and of the engine over them.
struct cpu_parts {
  kernels::model_weights weights;
  kernels::weight_plan formats;
  stage_engine_options engine;
};

result<cpu_parts> parts_of(const model::checkpoint& file, const model::model_info& info,
                           const cpu_engine_options& options) {
  kernels::weight_plan formats = options.formats.value_or(stored_type(info));
  if (!kernels::format_of(formats.base()))
    return error{error_kind::unsupported,
                 "matrices of type " + std::string(to_string(formats.base())) +
                     " are not supported on the CPU; use fp32, bf16 or fp16",
                 "dtype"};
  auto weights = model::bind(file, info);
  if (!weights) return weights.error();
  return cpu_parts{.weights = std::move(*weights),
                   .formats = formats,
                   .engine = {.device = "cpu",
                              .model_identity = options.model_identity,
                              .weight_type = formats.name(),
                              .state = info.state,
                              .layers = info.layers,
                              .vocab = info.vocab,
                              .max_tick_rows = options.max_tick_rows,
                              .limits = {.slots = options.slots,
                                         .max_rows = options.max_tick_tokens,
                                         .max_logit_rows = std::min(options.max_tick_tokens, logit_rows_of_cpu),
                                         .threads = options.threads}}};
}

}  // namespace

dtype stored_type(const model::model_info& info) {
  return kernels::format_of(info.matrix_type) ? info.matrix_type : dtype::f32;
}

result<memory_plan> plan_cpu_engine(const model::checkpoint& file, const model::model_info& info,
                                    const cpu_engine_options& options) {
  const auto parts = parts_of(file, info, options);
  if (!parts) return parts.error();
  const auto of_stages = kernels::plan_cpu_stages(parts->weights, parts->formats, parts->engine.limits);
  if (!of_stages) return of_stages.error();
  return plan_stage_engine(*of_stages, parts->engine);
}

result<std::unique_ptr<engine>> make_cpu_engine(const model::checkpoint& file, const model::model_info& info,
                                                const cpu_engine_options& options) {
  const auto parts = parts_of(file, info, options);
  if (!parts) return parts.error();
  auto stages = kernels::make_cpu_stages(parts->weights, parts->formats, parts->engine.limits, options.progress);
  if (!stages) return stages.error();
  return make_stage_engine(std::move(*stages), parts->engine);
}

}  // namespace skein::engine
