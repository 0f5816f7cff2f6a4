#pragma once
#include <string>

#include "config/load.hpp"

namespace skein::config {

/// The merged settings as a TOML file, every key with a comment that names the origin of its value. Secrets are
/// replaced by a comment. Reading the file back gives the same settings except for those.
[[nodiscard]] std::string dump(const loaded& merged);

}  // namespace skein::config
