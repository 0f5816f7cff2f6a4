#pragma once
#include <cstddef>
#include <cstdint>

namespace skein::kernels::gpu {

/// What matrices and activations, and separately stored states, are made of.
enum class element : std::uint8_t { f32, f16, bf16 };

[[nodiscard]] constexpr std::size_t element_bytes(element e) { return e == element::f32 ? 4 : 2; }

}  // namespace skein::kernels::gpu
