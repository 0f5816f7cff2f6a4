#pragma once
#include <cstddef>

#include "actors/request/service_context.hpp"
#include "base/result.hpp"

namespace skein::request {

/// Counts `bytes` of a request against settings.held_bytes_max.
/// Errors: overloaded while others hold too much; too_large for more than the whole ceiling.
[[nodiscard]] result<byte_budget::lease> hold_memory(const service_context& context, std::size_t bytes);

}  // namespace skein::request
