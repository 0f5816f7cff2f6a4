#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actors/connection/http/arriving_bytes.hpp"

/// WebSocket frames (RFC 6455), as read and written by a server. Messages are text; no extensions. No sockets and no
/// clock.
namespace skein::connection {

/// Close codes (RFC 6455, 7.4.1).
namespace close_code {
inline constexpr std::uint16_t normal = 1000, going_away = 1001, protocol_error = 1002, not_text = 1003, none = 1005,
                               not_utf8 = 1007, policy = 1008, too_big = 1009, internal = 1011, restart = 1012,
                               try_again_later = 1013;
}

/// A message or control frame from the client.
struct socket_event {
  enum class kind : std::uint8_t {
    text,   ///< a whole message
    ping,   ///< must be answered by a pong with the same data
    pong,   ///< an answer to a ping
    close,  ///< the client closes the WebSocket with `code` (close_code::none: without one)
    fault,  ///< a malformed frame: close with `code` and stop reading
  };
  kind what;
  std::string data;
  std::uint16_t code = 0;
};

class frame_reader {
 public:
  explicit frame_reader(std::size_t message_bytes_max) : message_bytes_max_(message_bytes_max) {}

  /// Consumes bytes from the front of `in`; nullopt if more are needed. Text is checked as it arrives, so that an
  /// invalid byte ends the WebSocket before the message is complete.
  [[nodiscard]] std::optional<socket_event> next(std::string& in);

  /// Bytes of incomplete messages in memory.
  [[nodiscard]] std::size_t held_bytes() const { return message_.held_bytes() + small_.size(); }

 private:
  [[nodiscard]] bool read_header(std::string_view in, std::size_t& size, std::optional<socket_event>& fault);
  [[nodiscard]] std::optional<socket_event> frame_over();
  [[nodiscard]] std::optional<socket_event> closed() const;
  [[nodiscard]] bool text_is_sound();

  const std::size_t message_bytes_max_;
  bool in_frame_ = false, final_ = false, control_ = false;
  std::uint8_t opcode_ = 0;
  std::uint64_t left_ = 0;   // bytes of the frame's payload not yet received
  std::uint64_t taken_ = 0;  // bytes of it received so far, for the mask
  char mask_[4] = {};
  arriving_bytes message_;   // payload of a text message so far
  std::string small_;        // payload of a control frame
  std::size_t checked_ = 0;  // bytes of message_ that are known to be complete characters
  bool in_message_ = false;  // between fragments of a message
};

/// A server frame: unfragmented and unmasked.
[[nodiscard]] std::string text_frame(std::string_view text);
[[nodiscard]] std::string ping_frame();
[[nodiscard]] std::string pong_frame(std::string_view data);
/// `reason` is truncated to the size limit. `close_code::none`: no code.
[[nodiscard]] std::string close_frame(std::uint16_t code, std::string_view reason);

}  // namespace skein::connection
