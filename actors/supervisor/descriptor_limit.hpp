#pragma once
#include <cstdint>

namespace skein::supervisor {

/// Lifts the process's soft limit on open descriptors, where it is lower, to what that many connections need, of which
/// each takes `each` of them; as far as the hard limit allows. Logs a warning when that is too little: further
/// connections then wait to be accepted.
void allow_connections(std::uint32_t connections_max, std::uint32_t each);

}  // namespace skein::supervisor
