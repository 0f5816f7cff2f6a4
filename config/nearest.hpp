#pragma once
#include <span>
#include <string_view>

namespace skein::config {

/// The known spelling with the smallest edit distance to `word`, for "did you mean"; empty if none is near.
[[nodiscard]] std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

}  // namespace skein::config
