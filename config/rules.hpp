#pragma once
#include "config/load.hpp"

namespace skein::config {

/// Appends a fault for every violated rule between settings; each fault names the keys involved.
void check_rules(loaded& merged);

/// Whether an address is loopback: "localhost", 127.0.0.0/8, ::1.
[[nodiscard]] bool is_loopback(std::string_view host);

/// Whether the settings name a password or a file of keys. Such a server serves no client without a secret, even while
/// the file contains no keys; with allow_unauthenticated, such a file has no effect.
[[nodiscard]] bool asks_for_secret(const config& settings);

}  // namespace skein::config
