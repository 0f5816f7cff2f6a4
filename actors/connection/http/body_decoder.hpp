#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "actors/connection/http/arriving_bytes.hpp"
#include "actors/connection/http/http.hpp"
#include "actors/connection/http/refusal.hpp"
#include "actors/connection/http/request_gate.hpp"

namespace skein::connection {

/// Decodes the body of one request from the bytes that follow its header. Chunk extensions and trailers are skipped and
/// discarded; they count against separate limits and against the limit on all bytes of the body.
class body_decoder {
 public:
  /// `bytes_max` applies if it is less than limits.body_bytes_max or, for a file, upload_bytes_max.
  body_decoder(const body_framing& framing, const connection_limits& limits,
               std::uint64_t bytes_max = std::numeric_limits<std::uint64_t>::max());

  /// Consumes the bytes of this body from the front of `bytes` and returns their number; all of them until done().
  [[nodiscard]] accepted<std::size_t> take(std::string_view bytes);

  [[nodiscard]] bool done() const { return state_ == state::done; }
  /// Bytes taken so far, framing included.
  [[nodiscard]] std::uint64_t wire_bytes() const { return wire_bytes_; }
  /// Memory of the body so far.
  [[nodiscard]] std::size_t held_bytes() const { return body_.held_bytes(); }
  /// The body so far, moved out.
  [[nodiscard]] std::string release() { return body_.release(); }

 private:
  /// The chunk of size 0 is followed by trailer lines and an empty line.
  enum class state { fixed, size, extension, size_lf, data, data_cr, data_lf, trailer, trailer_lf, done };

  accepted<void> take_framing_byte(char c);
  accepted<void> take_size_digit(char c);
  accepted<void> take_trailer_byte(char c);
  void append(std::string_view bytes);

  const std::uint64_t body_bytes_max_;
  const std::uint64_t wire_bytes_max_;
  const std::uint32_t trailer_bytes_max_;
  state state_;
  std::uint64_t remaining_ = 0;  ///< of the fixed body or the current chunk
  std::uint64_t wire_bytes_ = 0;
  std::uint32_t line_bytes_ = 0;     ///< of the current chunk line or trailer line
  std::uint32_t trailer_bytes_ = 0;  ///< of all trailer lines
  arriving_bytes body_;
};

}  // namespace skein::connection
