#pragma once
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/result.hpp"

namespace skein::model {

/// An adapter to merge into a model.
struct adapter_choice {
  std::filesystem::path path;   ///< a file, or a folder with adapter_config.json
  std::optional<double> scale;  ///< of what it adds; none: as the adapter says
};

/// "FILE" or "FILE:SCALE". Errors: invalid_argument (adapter).
[[nodiscard]] result<adapter_choice> parse_adapter(std::string_view text);

}  // namespace skein::model
