#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// The frames of a WebSocket (RFC 6455), as a server reads and writes them. Messages are texts; extensions there are
/// none. Plain classes: no socket, no clock.
namespace skein::connection {

/// Why a socket ends (RFC 6455, 7.4.1).
namespace close_code {
inline constexpr std::uint16_t normal = 1000, going_away = 1001, protocol_error = 1002, not_text = 1003, none = 1005,
                               not_utf8 = 1007, policy = 1008, too_big = 1009, internal = 1011, restart = 1012,
                               try_again_later = 1013;
}

/// Something that the client said.
struct socket_event {
  enum class kind : std::uint8_t {
    text,   ///< a whole message
    ping,   ///< to be answered by a pong with the same data
    pong,   ///< a sign of life
    close,  ///< the client ends the socket, with `code` (none: without one)
    fault,  ///< what it sent is no frame: to be closed with `code`, and nothing read any more
  };
  kind what;
  std::string data;
  std::uint16_t code = 0;
};

class frame_reader {
 public:
  explicit frame_reader(std::size_t message_bytes_max) : message_bytes_max_(message_bytes_max) {}

  /// Takes bytes from the front of `in`; nothing when more are needed. A text is checked as it comes, so that a wrong
  /// byte ends the socket before the message is whole.
  [[nodiscard]] std::optional<socket_event> next(std::string& in);

  /// Of messages that are not whole, in memory.
  [[nodiscard]] std::size_t held_bytes() const { return message_.size() + small_.size(); }

 private:
  [[nodiscard]] bool read_header(std::string_view in, std::size_t& size, std::optional<socket_event>& fault);
  [[nodiscard]] std::optional<socket_event> frame_over();
  [[nodiscard]] std::optional<socket_event> closed() const;
  [[nodiscard]] bool text_is_sound();

  const std::size_t message_bytes_max_;
  bool in_frame_ = false, final_ = false, control_ = false;
  std::uint8_t opcode_ = 0;
  std::uint64_t left_ = 0;   // bytes of the frame's payload that are still to come
  std::uint64_t taken_ = 0;  // and that have come, for the mask
  char mask_[4] = {};
  std::string message_, small_;  // of a text, in parts; of a control frame
  std::size_t checked_ = 0;      // bytes of message_ that are whole characters
  bool in_message_ = false;      // a part of one has come, more follow
};

/// A frame as a server sends it: whole and unmasked.
[[nodiscard]] std::string text_frame(std::string_view text);
[[nodiscard]] std::string ping_frame();
[[nodiscard]] std::string pong_frame(std::string_view data);
/// `reason` is cut to what fits. `close_code::none`: without a code.
[[nodiscard]] std::string close_frame(std::uint16_t code, std::string_view reason);

}  // namespace skein::connection
