#include "actors/request/memory.hpp"

#include <string>

namespace skein::request {

namespace {

std::string named(std::size_t held_bytes_max) {
  return "queue.bytes_max (" + std::to_string(held_bytes_max) + " bytes)";
}

}  // namespace

error never_fits(std::size_t bytes, std::size_t held_bytes_max) {
  return {error_kind::too_large,
          "the request needs " + std::to_string(bytes) + " bytes, more than " + named(held_bytes_max), ""};
}

error nobody_listens(const service_context& context) {
  if (context.draining) return {error_kind::unavailable, "the server is shutting down", ""};
  return {error_kind::overloaded, "the server is busy; try again soon", ""};
}

result<byte_budget::lease> hold_memory(const service_context& context, std::size_t bytes) {
  const std::size_t ceiling = context.settings.held_bytes_max;
  if (auto lease = context.memory->take(bytes, ceiling)) return lease;
  if (bytes > ceiling) return never_fits(bytes, ceiling);
  return error{error_kind::overloaded,
               "the requests that wait and run hold all of " + named(ceiling) + "; try again soon", ""};
}

}  // namespace skein::request
