#include "engine/gpu/gpu_engine.hpp"

#include <algorithm>
#include <utility>

#include "base/log/log.hpp"
#include "engine/gpu/gpu_backend.hpp"
#include "engine/host_engine.hpp"

namespace skein::engine {
namespace {

// Rows of one head call: a long score row reads the head matrix once per this many positions. At a vocabulary of 65536
// their logits take 64 MiB, and more if a tick can sample more rows.
constexpr std::uint32_t logit_rows_of_gpu = 256;

result<kernels::gpu::element> element_of(dtype type, const char* what, const char* field) {
  switch (type) {
    case dtype::f32: return kernels::gpu::element::f32;
    case dtype::f16: return kernels::gpu::element::f16;
    case dtype::bf16: return kernels::gpu::element::bf16;
    default: break;
  }
  return error{error_kind::unsupported,
               std::string(what) + " of type " + std::string(to_string(type)) +
                   " are not supported on the GPU; use f32, f16 or bf16",
               field};
}

/// A few more than there are slots are enough.
std::uint32_t stages_for(const gpu_engine_options& options, std::size_t state_bytes) {
  constexpr std::size_t least = 4;
  return static_cast<std::uint32_t>(
      std::clamp(options.moving_bytes_max / state_bytes, least, least + std::size_t{options.slots}));
}

/// The arguments of make_model.
struct gpu_parts {
  kernels::model_weights weights;
  dtype matrix_type;
  kernels::gpu::gpu_options how;
};

/// The type of the matrices: the wanted one, or that of the file if the device has it.
result<dtype> matrix_type_of(const kernels::gpu::plugin& plugin, const model::model_info& info,
                             const gpu_engine_options& options) {
  if (options.matrix_type && options.matrix_type != dtype::bf16) return *options.matrix_type;
  if (!options.matrix_type && info.matrix_type != dtype::bf16) return dtype::f16;
  const auto device = plugin.describe_device(options.device);
  if (!device) return device.error();
  if (device->has_bf16) return dtype::bf16;
  if (options.matrix_type)
    return error{error_kind::unsupported, "dtype: " + device->name + " has no bf16 arithmetic; use fp16 or fp32",
                 "dtype"};
  log::info("the GPU has no bf16 arithmetic; weights become fp16", {{"device", device->name}});
  return dtype::f16;
}

result<gpu_parts> parts_of(const kernels::gpu::plugin& plugin, const model::checkpoint& file,
                           const model::model_info& info, const gpu_engine_options& options) {
  const auto chosen = matrix_type_of(plugin, info, options);
  if (!chosen) return chosen.error();
  const dtype matrix_type = *chosen;
  const auto matrices = element_of(matrix_type, "matrices", "dtype");
  if (!matrices) return matrices.error();
  if (options.state_type == dtype::bf16)
    return error{error_kind::unsupported, "states of type bf16 are not supported on the GPU; use f32 or f16",
                 "state-dtype"};
  const auto states = element_of(options.state_type, "states", "state-dtype");
  if (!states) return states.error();
  auto weights = model::bind(file, info);
  if (!weights) return weights.error();

  gpu_parts parts{.weights = std::move(*weights), .matrix_type = matrix_type, .how = {}};
  parts.how.device = options.device;
  parts.how.matrix_type = *matrices;
  if (options.formats) parts.how.formats = *options.formats;
  parts.how.state_type = *states;
  parts.how.invariance = options.invariance;
  parts.how.tuning = options.tuning;
  parts.how.limits = {.slots = options.slots,
                      .max_tick_tokens = options.max_tick_tokens,
                      .max_tick_rows = options.max_tick_rows,
                      .max_logit_rows = logit_rows_of_gpu,
                      .logit_bias_max = options.row_max.logit_bias_max,
                      .stop_ids_max = options.row_max.stop_ids_max,
                      .state_stages = stages_for(options, model::state_format(info.state, options.state_type).bytes())};
  parts.how.progress = options.progress;
  return parts;
}

void log_recording(const kernels::gpu::runner_sizes& sizes) {
  log::info("decode graphs captured", {{"sizes", sizes.graphs}, {"seconds", sizes.graph_seconds}});
  if (!sizes.library.empty())
    log::info("GEMM library", {{"library", sizes.library}, {"seconds", sizes.library_seconds}});
}

}  // namespace

result<memory_plan> plan_gpu_engine(const kernels::gpu::plugin& plugin, const model::checkpoint& file,
                                    const model::model_info& info, const gpu_engine_options& options) {
  const auto parts = parts_of(plugin, file, info, options);
  if (!parts) return parts.error();
  return plugin.plan_runner(parts->weights, parts->how);
}

result<std::unique_ptr<engine>> make_gpu_engine(const kernels::gpu::plugin& plugin, const model::checkpoint& file,
                                                const model::model_info& info, const gpu_engine_options& options) {
  const auto parts = parts_of(plugin, file, info, options);
  if (!parts) return parts.error();
  const auto device = plugin.describe_device(options.device);
  if (!device) return device.error();
  auto runner = plugin.make_runner(parts->weights, parts->how);
  if (!runner) return runner.error();
  log_recording((*runner)->sizes());
  engine_info about;
  about.device = std::string(plugin.kind) + ':' + std::to_string(options.device) + ' ' + device->name;
  about.model_identity = options.model_identity;
  const kernels::weight_plan& formats = parts->how.formats;
  about.weight_type = formats.quantised() ? formats.name() : std::string(to_string(parts->matrix_type));
  about.vocab = info.vocab;
  about.slots = options.slots;
  about.max_tick_tokens = options.max_tick_tokens;
  about.max_tick_rows = options.max_tick_rows;
  about.forced_max = usual_forced_max;
  about.state = {info.state, options.state_type};
  return make_runner_engine(std::move(*runner), std::move(about));
}

std::unique_ptr<engine> make_runner_engine(std::unique_ptr<kernels::gpu::tick_runner> runner, engine_info info) {
  const kernels::gpu::runner_sizes& sizes = runner->sizes();
  info.row_max = {.logit_bias_max = sizes.logit_bias_max, .stop_ids_max = sizes.stop_ids_max};
  info.top_logprobs_max = kernels::gpu::top_logprobs_most;
  info.chunk_tokens = sizes.chunk_tokens;
  info.constrains = info.rules_wait = true;
  info.forced_max = std::min(info.forced_max, kernels::gpu::forced_most);
  info.coming_max = std::max(sizes.state_stages / 4, 1u);
  info.leaving_max = sizes.state_stages - info.coming_max;
  info.memory = sizes.memory;
  auto work = std::make_unique<gpu_backend>(std::move(runner), info);
  return make_host_engine(std::move(info), std::move(work));
}

}  // namespace skein::engine
