#pragma once
#include <cstdint>

namespace skein::supervisor {

/// Raises the soft limit on open descriptors to what `connections_max` connections with `each` descriptors need, if it
/// is lower and as far as the hard limit allows. Logs a warning if that is not enough; further connections then wait to
/// be accepted.
void allow_connections(std::uint32_t connections_max, std::uint32_t each);

}  // namespace skein::supervisor
