#pragma once
#include <cstddef>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "base/tensor.hpp"
#include "model/checkpoint.hpp"

/// Finding NaN and infinity in tensors: both have an exponent of ones.
namespace skein::model {

/// True when the elements of type `type` that lie back to back in `bytes` (whole elements, unaligned) include NaN or
/// infinity. False for integer types. Eight bytes at a time without a branch, so that it keeps up with the hash that
/// reads the same bytes.
[[nodiscard]] bool holds_nonfinite(std::span<const std::byte> bytes, dtype type);

/// Layer 0 has no value residual: what files keep under its names is not used and may be anything.
[[nodiscard]] bool is_unused(std::string_view tensor);

/// bad_file: names the tensor and what is accepted.
[[nodiscard]] error nonfinite_tensor(const checkpoint& file, std::string_view name);

}  // namespace skein::model
