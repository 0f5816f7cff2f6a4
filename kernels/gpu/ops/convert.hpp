#pragma once
#include <cstddef>

#include "kernels/gpu/runtime/runtime.hpp"
#include "kernels/gpu/types/elements.hpp"

namespace skein::kernels::gpu {

/// Converts values[0 .. count) on the device from `from` to `to` in place, rounding to nearest even. Values beyond the
/// range of fp16 become its largest value. Both types have two bytes (checked).
[[nodiscard]] result<void> queue_convert(stream_handle in, void* values, std::size_t count, element from, element to);

}  // namespace skein::kernels::gpu
