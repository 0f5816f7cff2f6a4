#pragma once
#include <cstdint>

#include "kernels/gpu/types/elements.hpp"
#include "kernels/gpu/types/gpu_tuning.hpp"
#include "kernels/weights/model_weights.hpp"
#include "kernels/weights/weight_plan.hpp"

namespace skein::kernels::gpu {

/// What the bits of a row may depend on besides the preceding tokens and the sequence's beginning.
enum class invariance : std::uint8_t {
  standard,  ///< which tokens the plan computes in chunks (engine/prompt_parts.hpp), not batch composition
  strict,    ///< nothing else: no token is computed in chunks
  fast,      ///< batch composition too: GEMMs may use a library if one is found
};

struct gpu_limits {
  std::uint32_t slots = 1;  ///< sequences resident at once
  std::uint32_t max_tick_tokens = 512;
  std::uint32_t max_tick_rows = 64;   ///< row entries of a tick; `slots` if that is less
  std::uint32_t max_logit_rows = 64;  ///< rows of one piece of the head; raised if a tick may sample more rows
  std::uint32_t logit_bias_max = 0;   ///< entries of one sequence
  std::uint32_t stop_ids_max = 0;     ///< of one sequence
  std::uint32_t state_stages = 8;     ///< state transfers in flight; each has a buffer on the device and a pinned one
};

struct gpu_options {
  int device = 0;
  element matrix_type = element::f16;  ///< of activations and of matrices that are not quantised
  weight_plan formats = dtype::f16;    ///< which matrices are quantised, and how; other formats are not used
  element state_type = element::f32;   ///< of stored wkv states: f32 or f16
  gpu::invariance invariance = invariance::standard;
  gpu_tuning tuning;
  gpu_limits limits;
  load_progress progress;
};

}  // namespace skein::kernels::gpu
