#pragma once
#include <cstddef>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "base/tensor.hpp"
#include "model/checkpoint.hpp"

/// Search for NaN and infinity in tensors: all exponent bits of both are set.
namespace skein::model {

/// True if the packed elements of type `type` in `bytes` (whole elements, unaligned) include NaN or infinity. False for
/// integer types. Branch-free, eight bytes at a time, so that it keeps up with the hash of the same bytes.
[[nodiscard]] bool holds_nonfinite(std::span<const std::byte> bytes, dtype type);

/// The same of codes of fp8, which include NaN but no infinity.
[[nodiscard]] bool holds_nan_of_e4m3(std::span<const std::byte> codes);

/// Layer 0 has no value residual: tensors of these names in a file are not used and may contain anything.
[[nodiscard]] bool is_unused(std::string_view tensor);

/// bad_file naming the tensor and the accepted values.
[[nodiscard]] error nonfinite_tensor(const checkpoint& file, std::string_view name);

}  // namespace skein::model
