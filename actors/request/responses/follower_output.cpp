#include "actors/request/responses/follower_output.hpp"

#include <algorithm>

#include "actors/request/call/memory.hpp"

namespace skein::request {
namespace {

constexpr std::size_t piece_bytes_max = 64 * 1024;

}  // namespace

void follower_output::begin(connection::header_list headers, std::string so_far) {
  if (aborted_) return;
  begun_ = true;
  out_->begin_stream(200, std::move(headers));
  if (auto memory = share_.lease_anyway(so_far.size()); !so_far.empty())
    kept_.push_front({std::move(so_far), std::move(memory), false});
  send();
}

void follower_output::write(std::string events) {
  if (lost_ || aborted_) return;
  if (begun_ && kept_.empty()) return out_->write(std::move(events));
  keep(std::move(events));
}

void follower_output::keep(std::string events) {
  const std::size_t bytes = events.size();
  auto memory = hold_memory(share_, bytes);
  if (memory) {
    kept_.push_back({std::move(events), std::move(*memory), begun_});
    if (!begun_) return;
    late_bytes_ += bytes;
    pressure_.on_write(late_bytes_, outbound_bytes_max_);
    if (pressure_.is_ignored(late_bytes_, outbound_bytes_max_)) abort();
    return;
  }
  if (begun_) return abort();
  lost_ = memory.error();
  kept_.clear();
}

/// Writes until the connection's queue is full; `writable` continues.
void follower_output::send() {
  if (!begun_ || aborted_) return;
  while (!kept_.empty() && !out_->is_full()) out_->write(next_piece());
  if (kept_.empty() && std::exchange(over_, false)) out_->end();
}

std::string follower_output::next_piece() {
  kept_events& first = kept_.front();
  const std::size_t left = first.text.size() - sent_, bytes = std::min(left, piece_bytes_max);
  std::string piece = bytes == first.text.size() ? std::move(first.text) : first.text.substr(sent_, bytes);
  sent_ += bytes;
  if (bytes < left) return piece;
  if (first.late) {
    late_bytes_ -= sent_;
    (void)pressure_.on_sent(late_bytes_, outbound_bytes_max_);
  }
  sent_ = 0;
  kept_.pop_front();  // the connection counts the memory from here on
  return piece;
}

void follower_output::end() {
  over_ = true;
  send();
}

void follower_output::abort() {
  drop();
  out_->abort();
}

void follower_output::drop() {
  aborted_ = true;
  kept_.clear();
}

}  // namespace skein::request
