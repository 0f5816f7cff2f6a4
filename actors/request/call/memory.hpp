#pragma once
#include <cstddef>
#include <string>

#include "actors/byte_share.hpp"
#include "actors/request/shared/service_context.hpp"
#include "base/result.hpp"

namespace skein::request {

/// The error (too_large) for a request that needs `bytes`, more than the `most` that one client may hold.
[[nodiscard]] error never_fits(std::size_t bytes, std::size_t most);

/// The error for a full or closed mailbox: overloaded, or unavailable if the server is shutting down.
[[nodiscard]] error nobody_listens(const service_context& context);

/// The share of context.memory that one client may hold, by its key or else its address. `known`: it is authenticated,
/// or need not be; all other clients together may hold a quarter of the whole.
[[nodiscard]] byte_share share_of(const service_context& context, const caller& who, const std::string& client,
                                  bool known);
/// The same for requests on the admin socket, which only the whole limits.
[[nodiscard]] byte_share share_of_operator(const service_context& context);

/// Counts `bytes` of a request. Errors: as no_room.
[[nodiscard]] result<byte_budget::lease> hold_memory(const byte_share& share, std::size_t bytes);

}  // namespace skein::request
