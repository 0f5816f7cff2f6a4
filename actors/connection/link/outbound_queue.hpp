#pragma once
#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <string_view>

namespace skein::connection {

/// Bytes queued for a socket, in order. Small pieces are appended to the last one, so a thousand tokens cost a few
/// strings and one write; pieces that a running write may still read are not moved.
class outbound_queue {
 public:
  void push(std::string bytes);
  /// One chunk of a chunked body around `bytes`, which must not be empty.
  void push_chunk(std::string bytes);

  [[nodiscard]] bool empty() const { return bytes_ == 0; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// Bytes in memory: a piece stays whole until its last byte is written.
  [[nodiscard]] std::size_t held_bytes() const { return bytes_ + written_; }

  /// Stores the first pieces, for one write, in `pieces` and returns their number. They stay valid until consumed().
  [[nodiscard]] std::size_t gather(std::span<std::string_view> pieces);
  /// The write has ended and took `count` bytes from the front.
  void consumed(std::size_t count);
  /// Drops everything; no write may be running.
  void clear();

 private:
  std::deque<std::string> pieces_;
  std::size_t bytes_ = 0;      ///< in total, without the written bytes of the first piece
  std::size_t written_ = 0;    ///< of the first piece
  std::size_t in_flight_ = 0;  ///< pieces at the front that a write may read
};

}  // namespace skein::connection
