#pragma once
#include "base/result.hpp"
#include "kernels/gpu/types/elements.hpp"
#include "kernels/gpu/types/gpu_tuning.hpp"

namespace skein::kernels::gpu {

/// Measures, by the fastest of a few runs, how long an SM takes for a tile of each shape by 64 inputs, with weights of
/// that type. Shapes that do not fit the device remain 0, and so do all where other kernels are used for many rows:
/// with wgmma, without tensor cores for that type, on AMD GPUs. Takes some 64 MB of device memory.
/// Errors: unavailable (device, memory).
[[nodiscard]] result<tile_times> measure_tiles(int device, element type);

}  // namespace skein::kernels::gpu
