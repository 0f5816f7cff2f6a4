#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace skein::connection {

/// Bytes of a body or a message as they arrive, in a buffer whose memory is what held_bytes() says. A buffer that
/// doubles leaves blocks of as many bytes again to the allocator, so the memory of many clients that send slowly would
/// be twice what their bytes are.
class arriving_bytes {
 public:
  /// `expected`: how many bytes were announced; 0: unknown.
  explicit arriving_bytes(std::uint64_t expected = 0) : expected_(expected) {}

  void append(std::string_view bytes) { with_room_for(bytes.size()).append(bytes); }
  /// The bytes so far, to which `more` can be added.
  std::string& with_room_for(std::size_t more) {
    const std::size_t needed = bytes_.size() + more, before = bytes_.capacity();
    if (needed <= before) return bytes_;
    bytes_.reserve(std::max(needed, next_capacity(needed)));
    if (!bytes_.empty() && before < returned_bytes) outgrown_bytes_ += before;
    return bytes_;
  }
  [[nodiscard]] const std::string& so_far() const { return bytes_; }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  /// Memory of the bytes so far, including blocks that were outgrown.
  [[nodiscard]] std::size_t held_bytes() const {
    const bool is_written = bytes_.empty() || expected_ > 0 || bytes_.capacity() >= returned_bytes;
    return outgrown_bytes_ + (is_written ? bytes_.size() : bytes_.capacity());
  }
  /// All bytes, moved out.
  [[nodiscard]] std::string release() {
    std::string all = std::exchange(bytes_, {});
    outgrown_bytes_ = 0;
    if (expected_ == 0 && all.capacity() < returned_bytes) all.shrink_to_fit();
    return all;
  }

 private:
  static constexpr std::size_t first_bytes = 3072, growth = 4;
  /// Blocks of this size are mapped: they go back to the system, and what was not written takes no memory
  /// (supervisor/process/allocator.cpp).
  static constexpr std::size_t returned_bytes = 128 * 1024;
  /// Address space that an announcement alone gets.
  static constexpr std::size_t announced_bytes_max = 1 << 20;

  [[nodiscard]] std::size_t next_capacity(std::size_t needed) const {
    if (expected_ == 0) return std::max(first_bytes, growth * bytes_.capacity());
    const auto all = static_cast<std::size_t>(expected_);
    return needed <= announced_bytes_max ? std::min(all, announced_bytes_max) : all;
  }

  std::uint64_t expected_;
  std::size_t outgrown_bytes_ = 0;
  std::string bytes_;
};

}  // namespace skein::connection
