#pragma once
#include <vector>

#include "access/api_key.hpp"
#include "base/result.hpp"
#include "config/config.hpp"

namespace skein::supervisor {

/// The keys of server.keys_file; none where there is no such file in the settings. A file without a key is said in the
/// log: no client gets in then. Errors name the file, and of a wrong line its number.
[[nodiscard]] result<std::vector<access::api_key>> open_keys(const config::config& c);

}  // namespace skein::supervisor
