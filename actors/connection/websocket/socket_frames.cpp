#include "actors/connection/websocket/socket_frames.hpp"

#include <algorithm>
#include <utility>

#include "base/utf8.hpp"

namespace skein::connection {
namespace {

constexpr std::uint8_t continuation = 0x0, text = 0x1, binary = 0x2, close = 0x8, ping = 0x9, pong = 0xa;
constexpr std::size_t control_bytes_max = 125;

using kind = socket_event::kind;

socket_event fault(std::uint16_t code, std::string why) { return {kind::fault, std::move(why), code}; }

std::uint64_t big_endian(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char c : bytes) number = number << 8 | static_cast<unsigned char>(c);
  return number;
}

/// Codes that are valid in a close frame: not the ones reserved for local use, and no undefined ones.
bool may_be_sent(std::uint16_t code) {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

std::string frame(std::uint8_t opcode, std::string_view payload) {
  std::string out;
  out += static_cast<char>(0x80 | opcode);
  const std::size_t size = payload.size();
  const auto length = [&](char mark, int bytes) {
    out += mark;
    for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(size >> (8 * i));
  };
  if (size <= control_bytes_max)
    out += static_cast<char>(size);
  else if (size <= 0xffff)
    length(126, 2);
  else
    length(127, 8);
  return out.append(payload);
}

}  // namespace

/// Reads the frame header at the front of `in`; false if it is incomplete or has a fault.
bool frame_reader::read_header(std::string_view in, std::size_t& size, std::optional<socket_event>& trouble) {
  const auto no = [&](std::uint16_t code, const char* why) {
    trouble = fault(code, why);
    return false;
  };
  if (in.size() < 2) return false;
  const auto first = static_cast<unsigned char>(in[0]), second = static_cast<unsigned char>(in[1]);
  opcode_ = first & 0x0f;
  final_ = (first & 0x80) != 0;
  control_ = opcode_ >= close;
  if ((first & 0x70) != 0) return no(close_code::protocol_error, "a reserved bit is set");
  if ((opcode_ > binary && opcode_ < close) || opcode_ > pong)
    return no(close_code::protocol_error, "the opcode is reserved");
  if ((second & 0x80) == 0) return no(close_code::protocol_error, "client frames must be masked");
  left_ = second & 0x7f;
  if (control_ && !final_) return no(close_code::protocol_error, "control frames must not be fragmented");
  if (control_ && left_ > control_bytes_max)
    return no(close_code::protocol_error, "control frames must not exceed 125 bytes");
  if (!control_ && in_message_ != (opcode_ == continuation))
    return no(close_code::protocol_error,
              in_message_ ? "the previous message is not finished" : "there is no message to continue");
  if (opcode_ == binary) return no(close_code::not_text, "messages must be text");
  const std::size_t length_bytes = left_ == 126 ? 2 : left_ == 127 ? 8 : 0;
  size = 2 + length_bytes + 4;
  if (in.size() < size) return false;
  if (length_bytes > 0) left_ = big_endian(in.substr(2, length_bytes));
  const bool minimal = length_bytes == 0 || left_ > (length_bytes == 2 ? control_bytes_max : 0xffff);
  if (!minimal || left_ >> 63 != 0) return no(close_code::protocol_error, "the length is malformed");
  if (!control_ && left_ > message_bytes_max_ - std::min<std::size_t>(message_.size(), message_bytes_max_))
    return no(close_code::too_big, "the message is too long");
  std::copy_n(in.begin() + static_cast<std::ptrdiff_t>(size - 4), 4, mask_);
  return true;
}

std::optional<socket_event> frame_reader::next(std::string& in) {
  std::size_t used = 0;
  std::optional<socket_event> found;
  while (!found) {
    if (!in_frame_) {
      std::size_t size = 0;
      if (!read_header(std::string_view(in).substr(used), size, found)) break;
      used += size;
      in_frame_ = true;
      taken_ = 0;
      if (!control_ && !in_message_) message_ = arriving_bytes(final_ ? left_ : 0);
    }
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, in.size() - used));
    std::string& to = control_ ? small_ : message_.with_room_for(count);
    for (std::size_t i = 0; i < count; ++i)
      to += static_cast<char>(in[used + i] ^ mask_[(taken_ + i) % std::size(mask_)]);
    used += count;
    taken_ += count;
    left_ -= count;
    if (!control_ && !text_is_sound()) {
      found = fault(close_code::not_utf8, "text must be UTF-8");
      break;
    }
    if (left_ > 0) break;
    found = frame_over();
  }
  in.erase(0, used);
  return found;
}

std::optional<socket_event> frame_reader::frame_over() {
  in_frame_ = false;
  if (control_) {
    if (opcode_ == close) return closed();
    return socket_event{opcode_ == ping ? kind::ping : kind::pong, std::exchange(small_, {}), 0};
  }
  in_message_ = !final_;
  if (!final_) return std::nullopt;
  if (checked_ < message_.size()) return fault(close_code::not_utf8, "text must end with a complete character");
  checked_ = 0;
  return socket_event{kind::text, message_.release(), 0};
}

std::optional<socket_event> frame_reader::closed() const {
  if (small_.empty()) return socket_event{kind::close, "", close_code::none};
  const auto code =
      static_cast<std::uint16_t>(small_.size() < 2 ? 0 : big_endian(std::string_view(small_).substr(0, 2)));
  if (!may_be_sent(code)) return fault(close_code::protocol_error, "the close code is invalid");
  std::string reason = small_.substr(2);
  if (!is_utf8(reason)) return fault(close_code::not_utf8, "the close reason must be UTF-8");
  return socket_event{kind::close, std::move(reason), code};
}

bool frame_reader::text_is_sound() {
  while (checked_ < message_.size()) {
    const auto head = first_character(std::string_view(message_.so_far()).substr(checked_));
    if (head.what == utf8_head::kind::incomplete) return true;
    if (!head.is_character()) return false;
    checked_ += head.bytes;
  }
  return true;
}

std::string text_frame(std::string_view message) { return frame(text, message); }
std::string ping_frame() { return frame(ping, ""); }
std::string pong_frame(std::string_view data) { return frame(pong, data); }

std::string close_frame(std::uint16_t code, std::string_view reason) {
  if (code == close_code::none) return frame(close, "");
  std::string payload{static_cast<char>(code >> 8), static_cast<char>(code & 0xff)};
  payload += utf8_prefix(reason, control_bytes_max - payload.size());
  return frame(close, payload);
}

}  // namespace skein::connection
