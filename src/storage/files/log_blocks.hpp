#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

/// RocksDB's log format, used for the write-ahead log and the MANIFEST: blocks of 32 KiB that contain fragments of
/// records. A fragment has a header of checksum (4 bytes, over type and data), length (2 bytes) and type,
/// little-endian.
/// Source: RocksDB's wiki, "Write Ahead Log File Format".
namespace skein::storage {

inline constexpr std::size_t log_block_bytes = 32 << 10, log_header_bytes = 7, log_length_offset = 4;

struct log_header {
  std::uint32_t checksum = 0;
  std::uint16_t length = 0;
  std::uint8_t type = 0;
};

/// `bytes` has at least log_header_bytes.
[[nodiscard]] inline log_header header_at(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<std::uint8_t>(bytes[i])); };
  return {at(0) | at(1) << 8 | at(2) << 16 | at(3) << 24, static_cast<std::uint16_t>(at(4) | at(5) << 8),
          static_cast<std::uint8_t>(at(6))};
}

}  // namespace skein::storage
