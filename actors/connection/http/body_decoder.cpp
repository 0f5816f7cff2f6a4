#include "actors/connection/http/body_decoder.hpp"

#include <algorithm>

namespace skein::connection {
namespace {

/// Limit on a chunk line: a size of at most 16 digits, and extensions, which are ignored.
constexpr std::uint32_t chunk_line_bytes_max = 1024;

/// A chunk up to this size gets its room when it is announced, a longer one as it arrives.
constexpr std::uint64_t announced_chunk_max = 64 * 1024;

const refusal bad_chunk{400, "the chunked body is malformed"};

bool control_character(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }

}  // namespace

body_decoder::body_decoder(const body_framing& framing, const connection_limits& limits, std::uint64_t bytes_max)
    : body_bytes_max_(std::min(framing.upload ? limits.upload_bytes_max : limits.body_bytes_max, bytes_max)),
      wire_bytes_max_(limits.request_wire_bytes_max + (framing.upload ? limits.upload_bytes_max : 0)),
      trailer_bytes_max_(limits.header_bytes_max),
      state_(framing.chunked              ? state::size
             : framing.content_length > 0 ? state::fixed
                                          : state::done),
      remaining_(framing.content_length),
      body_(framing.chunked ? 0 : framing.content_length) {}

accepted<std::size_t> body_decoder::take(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && !done()) {
    if (state_ == state::fixed || state_ == state::data) {
      const auto piece = bytes.substr(taken, std::min<std::uint64_t>(remaining_, bytes.size() - taken));
      append(piece);
      taken += piece.size();
    } else {
      ++wire_bytes_;
      if (auto fine = take_framing_byte(bytes[taken++]); !fine) return fine.error();
    }
    if (wire_bytes_ > wire_bytes_max_) return refusal{413, "the body and its framing are too large"};
  }
  return taken;
}

void body_decoder::append(std::string_view bytes) {
  body_.append(bytes);
  wire_bytes_ += bytes.size();
  remaining_ -= bytes.size();
  if (remaining_ == 0) state_ = state_ == state::fixed ? state::done : state::data_cr;
}

accepted<void> body_decoder::take_framing_byte(char c) {
  switch (state_) {
    case state::size: return take_size_digit(c);
    case state::extension:
      if (c == '\r')
        state_ = state::size_lf;
      else if (control_character(c) || ++line_bytes_ > chunk_line_bytes_max)
        return bad_chunk;
      return {};
    case state::size_lf:
      if (c != '\n') return bad_chunk;
      line_bytes_ = 0;
      state_ = remaining_ > 0 ? state::data : state::trailer;
      return {};
    case state::data_cr:
      if (c != '\r') return bad_chunk;
      state_ = state::data_lf;
      return {};
    case state::data_lf:
      if (c != '\n') return bad_chunk;
      line_bytes_ = 0;
      state_ = state::size;
      return {};
    default: return take_trailer_byte(c);
  }
}

accepted<void> body_decoder::take_size_digit(char c) {
  int digit = -1;
  if (c >= '0' && c <= '9') digit = c - '0';
  if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
  if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
  if (digit >= 0) {
    // remaining_ is the size of the new chunk; with at most 16 digits it cannot overflow.
    if (++line_bytes_ > 16) return bad_chunk;
    remaining_ = remaining_ * 16 + static_cast<std::uint64_t>(digit);
    return {};
  }
  if (line_bytes_ == 0 || (c != ';' && c != '\r')) return bad_chunk;
  if (remaining_ > body_bytes_max_ || body_.size() > body_bytes_max_ - remaining_)
    return body_too_large(body_bytes_max_);
  if (remaining_ <= announced_chunk_max) (void)body_.with_room_for(static_cast<std::size_t>(remaining_));
  state_ = c == ';' ? state::extension : state::size_lf;
  return {};
}

accepted<void> body_decoder::take_trailer_byte(char c) {
  if (++trailer_bytes_ > trailer_bytes_max_) return refusal{431, "the trailer is too large"};
  if (state_ == state::trailer_lf) {
    if (c != '\n') return bad_chunk;
    state_ = line_bytes_ == 0 ? state::done : state::trailer;
    line_bytes_ = 0;
    return {};
  }
  if (c == '\r')
    state_ = state::trailer_lf;
  else if (control_character(c))
    return bad_chunk;
  else
    ++line_bytes_;
  return {};
}

}  // namespace skein::connection
