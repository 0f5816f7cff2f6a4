#include "actors/request/answer/answer_row.hpp"

#include <algorithm>
#include <iterator>

#include "protocol/chat/call_splitter.hpp"

namespace skein::request {

row_text::piece answer_row::take(std::string_view answer_id) {
  row_text::piece piece = text.take();
  for (auto& call : piece.calls) {
    const bool begins = !call.name.empty();
    call.number = begins ? calls_made++ : calls_made - 1;
    if (begins) call.id = protocol::call_id(answer_id, index, call.number);
  }
  return piece;
}

void answer_row::collect(row_text::piece&& piece) {
  reasoning += piece.reasoning;
  content += piece.content;
  for (const auto& call : piece.calls) protocol::add_piece(call, calls);
  std::ranges::move(piece.logprobs, std::back_inserter(logprobs));
}

void answer_row::resume_after(const row_text::piece& known) {
  for (const auto& call : known.calls) protocol::add_piece(call, calls);
  if (!calls.empty() && calls.back().whole) calls.clear();
  if (calls.empty()) return;
  calls.erase(calls.begin(), calls.end() - 1);
  calls.front().arguments.clear();
}

}  // namespace skein::request
