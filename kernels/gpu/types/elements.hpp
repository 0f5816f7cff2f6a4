#pragma once
#include <cstddef>
#include <cstdint>

namespace skein::kernels::gpu {

/// The element type of matrices and activations, and separately of stored states.
enum class element : std::uint8_t { f32, f16, bf16 };

[[nodiscard]] constexpr std::size_t element_bytes(element e) { return e == element::f32 ? 4 : 2; }

}  // namespace skein::kernels::gpu
