#pragma once
#include <memory>

#include "kernels/gpu/elements.hpp"
#include "kernels/rwkv7_weights.hpp"

namespace skein::kernels::gpu {

struct gpu_options {
  int device = 0;
  element matrix_type = element::f16;  ///< of matrices and activations
  element state_type = element::f32;   ///< of stored wkv states: f32 or f16
  /// Long runs go in chunks on tensor cores, where there are some: faster, but then bits hang on where a prompt is cut.
  bool chunked_prefill = false;
  stage_limits limits;  ///< threads is not used
  load_progress progress;
};

/// RWKV-7 on a GPU, or in the emulator. All memory is taken here; the views may be dropped when this returns. Stages
/// queue their kernels and return; head, read_state and status wait for the device.
/// Errors: unsupported (a head size other than 64), bad_file (element types), unavailable (device, memory).
[[nodiscard]] result<std::unique_ptr<stages>> make_gpu_rwkv7(const rwkv7_weights& weights, const gpu_options& options);

}  // namespace skein::kernels::gpu
