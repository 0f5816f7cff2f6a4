#include "actors/request/call/memory.hpp"

#include <string>

namespace skein::request {

error never_fits(std::size_t bytes, std::size_t most) { return no_room(byte_share::outcome::too_large, bytes, most); }

error nobody_listens(const service_context& context) {
  if (context.draining) return {error_kind::unavailable, "the server is shutting down", ""};
  return {error_kind::overloaded, "the server is busy; try again soon", ""};
}

byte_share share_of(const service_context& context, const caller& who, const std::string& client, bool known) {
  const service_settings& s = context.settings;
  byte_budget& memory = *context.memory;
  auto own = memory.of(who.key.empty() ? "address " + network_of(client) : "key " + who.key);
  const byte_share::part all{memory.all(), s.queue.bytes_max};
  if (known) return {{std::move(own), s.key_memory()}, {}, all};
  return {{std::move(own), s.address_memory()}, {memory.strangers(), s.queue.bytes_max / 4}, all};
}

byte_share share_of_operator(const service_context& context) {
  return {{}, {}, {context.memory->all(), context.settings.queue.bytes_max}};
}

result<byte_budget::lease> hold_memory(const byte_share& share, std::size_t bytes) {
  auto why = byte_share::outcome::taken;
  if (auto lease = share.lease(bytes, why)) return lease;
  return no_room(why, bytes, share.most());
}

}  // namespace skein::request
