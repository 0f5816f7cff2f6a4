#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/tensor.hpp"
#include "kernels/gpu/types/coded_layout.hpp"
#include "kernels/gpu/types/elements.hpp"

namespace skein::kernels::gpu {

/// Quantises up to 16 outputs of a matrix view (outputs, inputs) to a panel of types/coded_layout.hpp, for inputs
/// padded to `width`; what the view does not have is zero. A matrix that its file stores in the format keeps the codes
/// of the file, and its scales if activations are fp16; bf16 activations have those of ggml's blocks rounded to bf16. A
/// row of fp8 has its one scale in all groups up to `width`. `type` is that of the activations. Returns the number of
/// groups whose scale is beyond half_scale_max or bf16_scale_max; in fp16 their scale becomes half_scale_max.
[[nodiscard]] std::size_t encode_panel(const tensor_view& from, element type, weight_format format, std::uint32_t width,
                                       std::byte* panel, std::vector<float>& scratch);

}  // namespace skein::kernels::gpu
