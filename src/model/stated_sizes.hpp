#pragma once
#include <optional>

#include "base/error.hpp"
#include "model/model_info.hpp"

namespace skein::model {

/// conflict with the sizes that a configuration file beside the model states: the error names the first one.
[[nodiscard]] std::optional<error> stated_size_fault(const checkpoint& file, const model_info& info);

}  // namespace skein::model
