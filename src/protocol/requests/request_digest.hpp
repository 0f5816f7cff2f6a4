#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace skein::protocol {

/// A hash of a request body: equal for bodies with the same members and values, in any order and spacing. Delivery
/// options (stream, stream_options) and the password are excluded. nullopt for a body that is not an object. It is
/// stored in sessions, so it must not change between versions.
[[nodiscard]] std::optional<std::uint64_t> request_digest(std::string_view body);

}  // namespace skein::protocol
