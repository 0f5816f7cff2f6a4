#pragma once
#include <algorithm>

#include "kernels/gpu/model/gpu_model.hpp"
#include "kernels/gpu/time_mix/chunks/chunk_plan.hpp"

namespace skein::kernels::gpu {

/// Whether a model wants prompts in chunks, if the device has kernels for them.
[[nodiscard]] inline bool wants_chunks(const model_dims& dims, const gpu_options& options, const model_room& room) {
  const bool may_chunk = options.invariance != invariance::strict && options.matrix_type != element::f32;
  return may_chunk && room.rows > chunk_tokens && dims.head_size == head_size;
}

[[nodiscard]] inline std::uint32_t chunked_runs_max(const model_room& room) { return std::min(room.slots, room.rows); }

}  // namespace skein::kernels::gpu
