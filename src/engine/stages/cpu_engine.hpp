#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/tensor.hpp"
#include "engine/engine.hpp"
#include "kernels/weights/model_weights.hpp"
#include "kernels/weights/weight_plan.hpp"
#include "model/model_info.hpp"

namespace skein::engine {

struct cpu_engine_options {
  std::optional<kernels::weight_plan> formats;  ///< none: the type of most matrices in the checkpoint
  std::uint32_t slots = 16;
  std::uint32_t max_tick_tokens = 512;
  std::uint32_t max_tick_rows = 64;
  std::uint32_t threads = 0;  ///< 0: all CPUs that the process may use
  kernels::load_progress progress;
  std::string model_identity;  ///< model::identity of the checkpoint
};

/// The floating type of most matrices in the checkpoint, if the CPU has it; else f32.
[[nodiscard]] dtype stored_type(const model::model_info& info);

/// An engine on the CPU cores of this machine. The checkpoint may be closed when this returns. Errors: those of
/// model::bind and kernels::make_cpu_stages.
[[nodiscard]] result<std::unique_ptr<engine>> make_cpu_engine(const model::checkpoint& file,
                                                              const model::model_info& info,
                                                              const cpu_engine_options& options);
/// The memory that such an engine will use, without allocating it. Errors: as above, except those of allocation.
[[nodiscard]] result<memory_plan> plan_cpu_engine(const model::checkpoint& file, const model::model_info& info,
                                                  const cpu_engine_options& options);

}  // namespace skein::engine
