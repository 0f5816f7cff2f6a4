#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace skein::protocol {

/// A number that stands for what a body asks: equal for bodies with the same members and values, in whatever order and
/// spacing. How the answer is delivered (stream, stream_options) and the password do not count. Nothing for a body that
/// is no object. The log keeps it, so it must not change between versions.
[[nodiscard]] std::optional<std::uint64_t> request_digest(std::string_view body);

}  // namespace skein::protocol
