#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/request/answer/row_text.hpp"
#include "protocol/responses/answer.hpp"

namespace skein::request {

/// One row of an answer: its text, its tool calls, how it ended, and what was collected for a whole answer.
struct answer_row {
  /// `choice`: the index of its choice in the response.
  answer_row(row_text t, std::uint32_t choice) : text(std::move(t)), index(choice) {}

  /// The new text. Its calls get numbers, and ids of the answer `answer_id`.
  [[nodiscard]] row_text::piece take(std::string_view answer_id);
  /// Adds a piece to the whole answer.
  void collect(row_text::piece&& piece);
  /// The client has this piece already. Of a call that goes on, it gets what is new.
  void resume_after(const row_text::piece& known);

  row_text text;
  std::uint32_t index;
  bool begun = false;  ///< role chunk or echo is out
  bool over = false;
  protocol::answer_end end;
  text_place place;  ///< in the choice's text
  std::uint32_t tokens_since_event = 0, calls_made = 0;

  // Of a whole answer, so far.
  std::string reasoning, content;
  std::vector<protocol::tool_call> calls;
  std::vector<scored_token> logprobs;
};

}  // namespace skein::request
