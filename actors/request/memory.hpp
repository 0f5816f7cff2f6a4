#pragma once
#include <cstddef>

#include "actors/request/service_context.hpp"
#include "base/result.hpp"

namespace skein::request {

/// too_large: a request that needs `bytes`, more than all of settings.held_bytes_max.
[[nodiscard]] error never_fits(std::size_t bytes, std::size_t held_bytes_max);

/// What a mailbox that takes no more means: overloaded, or unavailable where the server is ending.
[[nodiscard]] error nobody_listens(const service_context& context);

/// Counts `bytes` of a request against settings.held_bytes_max.
/// Errors: overloaded while others hold too much; too_large for more than the whole ceiling.
[[nodiscard]] result<byte_budget::lease> hold_memory(const service_context& context, std::size_t bytes);

}  // namespace skein::request
