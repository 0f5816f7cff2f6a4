#pragma once
#include <string>
#include <vector>

#include "config/config.hpp"

namespace skein::config {

/// What becomes of settings that are read anew while the server runs.
struct reloaded {
  config settings;                        ///< those that run, with the live ones as they were read
  std::vector<std::string> changed;       ///< paths of live settings that differ
  std::vector<std::string> need_restart;  ///< paths of others that differ
};

[[nodiscard]] reloaded take_live(const config& running, const config& fresh);

}  // namespace skein::config
