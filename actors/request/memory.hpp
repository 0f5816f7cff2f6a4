#pragma once
#include <cstddef>
#include <string>

#include "actors/byte_share.hpp"
#include "actors/request/service_context.hpp"
#include "base/result.hpp"

namespace skein::request {

/// too_large: a request that needs `bytes`, more than the `most` that one client may hold.
[[nodiscard]] error never_fits(std::size_t bytes, std::size_t most);

/// What a mailbox that takes no more means: overloaded, or unavailable where the server is ending.
[[nodiscard]] error nobody_listens(const service_context& context);

/// What one client may hold of context.memory: its key, or its address where it has none. `known`: it said who it is,
/// or need not; all others together have a quarter of the whole.
[[nodiscard]] byte_share share_of(const service_context& context, const caller& who, const std::string& client,
                                  bool known);
/// As above for requests of the admin socket, which only the whole limits.
[[nodiscard]] byte_share share_of_operator(const service_context& context);

/// Counts `bytes` of a request. Errors: as no_room.
[[nodiscard]] result<byte_budget::lease> hold_memory(const byte_share& share, std::size_t bytes);

}  // namespace skein::request
