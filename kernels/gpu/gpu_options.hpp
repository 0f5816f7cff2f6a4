#pragma once
#include <cstdint>

#include "kernels/gpu/elements.hpp"
#include "kernels/rwkv7_weights.hpp"

namespace skein::kernels::gpu {

/// How far the bits of a row may hang on the rows that are computed with it.
enum class invariance : std::uint8_t {
  standard,  ///< not at all while it decodes and for the prefill chunks of the scheduler; long prompts as is fastest
  strict,    ///< not at all, and not on where a prompt was cut either
  fast,      ///< as is fastest, also by another's products where their library is
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
