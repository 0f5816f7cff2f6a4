#pragma once
#include <string>

namespace skein::config {

/// config/skein.toml: every key with its default, below a comment that gives its meaning and legal values.
[[nodiscard]] std::string shipped_file();

}  // namespace skein::config
