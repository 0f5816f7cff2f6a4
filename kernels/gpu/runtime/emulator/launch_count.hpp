#pragma once
#include <cstdint>

namespace skein::kernels::gpu::emulator {

/// The number of kernels queued or captured so far, by all threads.
[[nodiscard]] std::uint64_t kernels_queued();

}  // namespace skein::kernels::gpu::emulator
