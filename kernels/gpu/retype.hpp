#pragma once
#include <cstddef>

#include "kernels/gpu/elements.hpp"
#include "kernels/gpu/runtime/runtime.hpp"

namespace skein::kernels::gpu {

/// values[0 .. count) on the device, read as `from`, become `to` in place, rounded to nearest even; what is beyond an
/// fp16 becomes its largest value. Two types of two bytes each (checked).
[[nodiscard]] result<void> queue_retype(stream_handle in, void* values, std::size_t count, element from, element to);

}  // namespace skein::kernels::gpu
