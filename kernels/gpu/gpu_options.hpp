#pragma once
#include <cstdint>

#include "kernels/gpu/elements.hpp"
#include "kernels/rwkv7_weights.hpp"

namespace skein::kernels::gpu {

/// What the bits of a row may depend on beside the tokens before it and the sequence's beginning.
enum class invariance : std::uint8_t {
  standard,  ///< on which tokens the plan has computed in chunks (engine/prompt_parts.hpp), not on the rest of the
             ///< batch
  strict,    ///< on nothing: no token goes in chunks
  fast,      ///< also on the rest of the batch: products may be a library's where there is one
};

struct gpu_limits {
  std::uint32_t slots = 1;  ///< sequences resident at once
  std::uint32_t max_tick_tokens = 512;
  std::uint32_t max_tick_rows = 64;   ///< row entries of a tick; no more than slots are used
  std::uint32_t max_logit_rows = 64;  ///< rows of one piece of the head, made larger where a tick may draw more
  std::uint32_t logit_bias_max = 0;   ///< entries of one sequence
  std::uint32_t stop_ids_max = 0;     ///< of one sequence
  std::uint32_t state_stages = 8;     ///< states on their way at a time: each once on the device, once pinned
};

struct gpu_options {
  int device = 0;
  element matrix_type = element::f16;  ///< of matrices and activations
  element state_type = element::f32;   ///< of stored wkv states: f32 or f16
  gpu::invariance invariance = invariance::standard;
  gpu_limits limits;
  load_progress progress;
};

}  // namespace skein::kernels::gpu
