#pragma once
#include <cstddef>

#include "kernels/gpu/runtime/runtime.hpp"

namespace skein::kernels::gpu {

/// Sizes and addresses of small copies are multiples of this.
inline constexpr std::size_t small_copy_unit = 16;
[[nodiscard]] constexpr std::size_t small_copy_bytes(std::size_t bytes) {
  return (bytes + small_copy_unit - 1) / small_copy_unit * small_copy_unit;
}

/// to[0 .. bytes) = from[0 .. bytes); one of the two is pinned host memory, the other device memory. A kernel copies
/// instead of a DMA engine: there a tick's plan would queue behind transfers of whole states.
[[nodiscard]] result<void> queue_small_copy(stream_handle in, void* to, const void* from, std::size_t bytes);

}  // namespace skein::kernels::gpu
