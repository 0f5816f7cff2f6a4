#include "actors/request/memory.hpp"

#include <string>

namespace skein::request {

result<byte_budget::lease> hold_memory(const service_context& context, std::size_t bytes) {
  const std::size_t ceiling = context.settings.held_bytes_max;
  if (auto lease = context.memory->take(bytes, ceiling)) return lease;
  const std::string limit = "queue.bytes_max (" + std::to_string(ceiling) + " bytes)";
  if (bytes > ceiling)
    return error{error_kind::too_large, "the request needs " + std::to_string(bytes) + " bytes, more than " + limit,
                 ""};
  return error{error_kind::overloaded, "the requests that wait and run hold all of " + limit + "; try again soon", ""};
}

}  // namespace skein::request
