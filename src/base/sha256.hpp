#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace skein {

using sha256_digest = std::array<std::uint8_t, 32>;

/// SHA-256 (FIPS 180-4).
[[nodiscard]] sha256_digest sha256(std::span<const std::uint8_t> bytes);

/// HMAC-SHA256 with a key of any length (RFC 2104).
[[nodiscard]] sha256_digest hmac_sha256(std::span<const std::uint8_t> key, std::span<const std::uint8_t> bytes);

/// 64 lower-case hexadecimal digits.
[[nodiscard]] std::string to_hex(const sha256_digest& digest);

}  // namespace skein
