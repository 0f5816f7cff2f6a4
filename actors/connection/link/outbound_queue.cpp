#include "actors/connection/link/outbound_queue.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/check.hpp"

namespace skein::connection {
namespace {

/// Up to this size a piece is appended to the previous one; larger pieces keep their own memory.
constexpr std::size_t small_bytes = 2048;

}  // namespace

void outbound_queue::push(std::string bytes) {
  if (bytes.empty()) return;
  bytes_ += bytes.size();
  const bool room = pieces_.size() > in_flight_ && pieces_.back().size() < small_bytes;
  if (room && bytes.size() <= small_bytes)
    pieces_.back() += bytes;
  else
    pieces_.push_back(std::move(bytes));
}

void outbound_queue::push_chunk(std::string bytes) {
  check(!bytes.empty(), "an empty chunk would end the body");
  std::array<char, 20> line{};
  char* end = std::to_chars(line.data(), line.data() + 16, bytes.size(), 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  push(std::string(line.data(), end));
  push(std::move(bytes));
  push("\r\n");
}

std::size_t outbound_queue::gather(std::span<std::string_view> pieces) {
  in_flight_ = std::min(pieces.size(), pieces_.size());
  for (std::size_t i = 0; i < in_flight_; ++i) pieces[i] = pieces_[i];
  if (in_flight_ > 0) pieces[0].remove_prefix(written_);
  return in_flight_;
}

void outbound_queue::consumed(std::size_t count) {
  check(count <= bytes_);
  in_flight_ = 0;
  bytes_ -= count;
  written_ += count;
  while (!pieces_.empty() && written_ >= pieces_.front().size()) {
    written_ -= pieces_.front().size();
    pieces_.pop_front();
  }
}

void outbound_queue::clear() { *this = outbound_queue(); }

}  // namespace skein::connection
