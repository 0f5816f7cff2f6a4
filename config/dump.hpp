#pragma once
#include <string>

#include "config/load.hpp"

namespace skein::config {

/// The merged settings as a TOML file, every key with a comment that says where its value came from. Secrets are not in
/// it: a set one shows as a comment. Read back, it gives the same settings but for those.
[[nodiscard]] std::string dump(const loaded& merged);

}  // namespace skein::config
