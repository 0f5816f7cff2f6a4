#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/tensor.hpp"
#include "engine/engine.hpp"
#include "kernels/gpu/plugin.hpp"
#include "model/model_info.hpp"

namespace skein::engine {

struct gpu_engine_options {
  int device = 0;
  std::optional<dtype> matrix_type;  ///< f16, bf16 or f32; none: bf16 if the file and the GPU have bf16, else f16
  dtype state_type = dtype::f32;     ///< of states: f32 or f16
  std::optional<kernels::weight_plan> formats;  ///< which matrices are quantised; none: none is
  std::uint32_t slots = 16;
  std::uint32_t max_tick_tokens = 512;
  std::uint32_t max_tick_rows = 64;
  sampling::row_limits row_max;
  std::size_t moving_bytes_max = std::size_t{256} << 20;  ///< of state staging buffers: this much on the device and
                                                          ///< again in pinned memory
  kernels::gpu::invariance invariance = kernels::gpu::invariance::standard;
  kernels::gpu::gpu_tuning tuning;
  kernels::load_progress progress;
  std::string model_identity;  ///< model::identity of the checkpoint
};

/// An engine on one GPU. A tick runs there from its tokens to the sampled tokens while the host queues the next one.
/// The checkpoint may be closed when this returns. Errors: those of model::bind and make_runner; unavailable
/// if there is no such device, unsupported for another type of matrices or states.
[[nodiscard]] result<std::unique_ptr<engine>> make_gpu_engine(const kernels::gpu::plugin& plugin,
                                                              const model::checkpoint& file,
                                                              const model::model_info& info,
                                                              const gpu_engine_options& options);

/// The device memory that such an engine will use, without allocating it; plan_runner lists what is not included.
/// Errors: as above, except those of allocation.
[[nodiscard]] result<memory_plan> plan_gpu_engine(const kernels::gpu::plugin& plugin, const model::checkpoint& file,
                                                  const model::model_info& info, const gpu_engine_options& options);

/// Wraps an existing runner in an engine; `info` has the fields that the runner does not know, such as the format of
/// its states.
[[nodiscard]] std::unique_ptr<engine> make_runner_engine(std::unique_ptr<kernels::gpu::tick_runner> runner,
                                                         engine_info info);

}  // namespace skein::engine
