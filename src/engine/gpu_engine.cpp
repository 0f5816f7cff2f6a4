#include "engine/gpu_engine.hpp"

#include <algorithm>
#include <utility>

#include "engine/stage_engine.hpp"

namespace skein::engine {
namespace {

// Rows of one head call: a tick of that many sequences reads the head matrix once. At a vocabulary of 65536 their
// logits take 64 MiB of device memory and as much pinned.
constexpr std::uint32_t max_logit_rows = 256;

result<kernels::gpu::element> element_of(dtype type, const char* what, const char* field) {
  switch (type) {
    case dtype::f32: return kernels::gpu::element::f32;
    case dtype::f16: return kernels::gpu::element::f16;
    case dtype::bf16: return kernels::gpu::element::bf16;
    default: break;
  }
  return error{error_kind::unsupported,
               std::string("the GPU does not keep ") + what + " as " + std::string(to_string(type)), field};
}

}  // namespace

result<std::unique_ptr<engine>> make_gpu_engine(const kernels::gpu::plugin& plugin, const model::checkpoint& file,
                                                const model::model_info& info, const gpu_engine_options& options) {
  const dtype stored = info.matrix_type == dtype::bf16 ? dtype::bf16 : dtype::f16;
  const dtype matrix_type = options.matrix_type.value_or(stored);
  const auto matrices = element_of(matrix_type, "matrices", "dtype");
  if (!matrices) return matrices.error();
  if (options.state_type == dtype::bf16)
    return error{error_kind::unsupported, "the GPU does not keep states as bf16", "state-dtype"};
  const auto states = element_of(options.state_type, "states", "state-dtype");
  if (!states) return states.error();
  const auto device = plugin.describe_device(options.device);
  if (!device) return device.error();
  const auto weights = model::bind_rwkv7(file, info);
  if (!weights) return weights.error();

  kernels::gpu::gpu_options how;
  how.device = options.device;
  how.matrix_type = *matrices;
  how.state_type = *states;
  how.limits = {.slots = options.slots,
                .max_rows = options.max_tick_tokens,
                .max_logit_rows = std::min(options.max_tick_tokens, max_logit_rows)};
  how.progress = options.progress;
  auto stages = plugin.make_rwkv7(*weights, how);
  if (!stages) return stages.error();
  return make_stage_engine(std::move(*stages), {.device = std::string(plugin.kind) + ':' +
                                                          std::to_string(options.device) + ' ' + device->name,
                                                .model_identity = options.model_identity,
                                                .weight_type = std::string(to_string(matrix_type)),
                                                .layers = info.layers,
                                                .vocab = info.vocab,
                                                .max_tick_rows = options.max_tick_rows,
                                                .limits = how.limits});
}

}  // namespace skein::engine
