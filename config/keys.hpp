#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "config/key.hpp"

namespace skein::config {

/// All keys except those of model sections, in the order of the shipped file.
[[nodiscard]] std::span<const key> keys();

/// The keys of `[models."name"]`.
[[nodiscard]] std::vector<key> model_keys(std::string_view model);

/// The key of a path as written in flags; the model's name may be bare or quoted: models.rwkv7-1.5b.top_p.
[[nodiscard]] std::optional<key> find_key(std::string_view path);

}  // namespace skein::config
