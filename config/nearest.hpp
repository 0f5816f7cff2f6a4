#pragma once
#include <span>
#include <string_view>

namespace skein::config {

/// The known spelling with the fewest edits to `word`, for "did you mean"; empty when none is near.
[[nodiscard]] std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

}  // namespace skein::config
