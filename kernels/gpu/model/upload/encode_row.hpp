#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "base/tensor.hpp"

namespace skein::kernels::gpu {

/// Quantises row `output` of a matrix view (outputs, inputs) to codes of e4m3, zeros behind them. A matrix that its
/// file stores as fp8 keeps the codes and the scale of the file. Returns the scale.
[[nodiscard]] float encode_fp8_row(const tensor_view& from, std::size_t output, std::span<std::byte> codes,
                                   std::vector<float>& scratch);

}  // namespace skein::kernels::gpu
