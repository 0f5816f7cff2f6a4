#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "config/key.hpp"

namespace skein::config {

/// All keys but those of model sections, section by section in the order of the shipped file.
[[nodiscard]] std::span<const key> keys();

/// The keys of `[models."name"]`.
[[nodiscard]] std::vector<key> model_keys(std::string_view model);

/// The key of a path as flags write it; the model's name may be bare or quoted: models.rwkv7-1.5b.top_p.
[[nodiscard]] std::optional<key> find_key(std::string_view path);

}  // namespace skein::config
