#include "actors/request/answer/answer_stream.hpp"

#include <algorithm>

namespace skein::request {

void answer_stream::add(std::size_t row, std::uint32_t index, row_text::piece piece,
                        std::vector<protocol::logprob_entry> scores) {
  round_of_[row] = round_;
  deltas_.push_back({index, std::move(piece), std::move(scores)});
}

bool answer_stream::write(const protocol::answer_writer& writer, const protocol::answer_head& head,
                          const protocol::session_note* note) {
  std::ranges::sort(deltas_, {}, &delta::index);
  std::vector<protocol::row_delta> rows;
  rows.reserve(deltas_.size());
  for (const delta& d : deltas_) rows.push_back({d.index, d.piece.reasoning, d.piece.content, d.scores, d.piece.calls});
  text_ += writer.delta_events(head, rows);
  deltas_.clear();
  ++round_;
  for (const auto& [index, end] : ended_) text_ += writer.end_event(head, index, end, note);
  ends_told_ += ended_.size();
  const bool is_last = !ended_.empty() && ends_told_ == rows_;
  ended_.clear();
  return is_last;
}

}  // namespace skein::request
