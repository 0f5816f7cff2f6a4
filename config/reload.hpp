#pragma once
#include <string>
#include <vector>

#include "config/config.hpp"

namespace skein::config {

/// Result of reading the settings again while the server runs.
struct reloaded {
  config settings;                        ///< the running settings with the live ones updated
  std::vector<std::string> changed;       ///< paths of live settings that differ
  std::vector<std::string> need_restart;  ///< paths of other settings that differ
};

[[nodiscard]] reloaded take_live(const config& running, const config& fresh);

}  // namespace skein::config
