#include "actors/supervisor/process/descriptor_limit.hpp"

#include <sys/resource.h>

#include <algorithm>

#include "base/log/log.hpp"

namespace skein::supervisor {
namespace {

/// For everything except connections: listeners, event queues, open files.
constexpr rlim_t other_descriptors = 128;

}  // namespace

void allow_connections(std::uint32_t connections_max, std::uint32_t each) {
  const rlim_t wanted = rlim_t{connections_max} * each + other_descriptors;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < wanted)
    log::warning("the descriptor limit is too low for limits.connections_max",
                 {{"descriptors", static_cast<std::uint64_t>(limit.rlim_cur)},
                  {"needed", static_cast<std::uint64_t>(wanted)},
                  {"connections_max", connections_max}});
}

}  // namespace skein::supervisor
