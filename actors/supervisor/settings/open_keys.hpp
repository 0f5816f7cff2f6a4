#pragma once
#include <vector>

#include "access/api_key.hpp"
#include "base/result.hpp"
#include "config/config.hpp"

namespace skein::supervisor {

/// The keys in server.keys_file; none if the setting is empty. Logs a warning for a file without keys, since no client
/// is admitted then. Errors name the file, and the line if one is malformed.
[[nodiscard]] result<std::vector<access::api_key>> open_keys(const config::config& c);

}  // namespace skein::supervisor
