#pragma once
#include "config/load.hpp"

namespace skein::config {

/// Appends a fault for every rule between settings that does not hold; each names the keys that it is about.
void check_rules(loaded& merged);

/// Whether an address reaches this machine only: "localhost", 127.0.0.0/8, ::1.
[[nodiscard]] bool is_loopback(std::string_view host);

/// Whether the settings name a password or a file of keys. Such a server serves no client without a secret, also while
/// its file holds no key; with allow_unauthenticated, a file without keys is as none.
[[nodiscard]] bool asks_for_secret(const config& settings);

}  // namespace skein::config
