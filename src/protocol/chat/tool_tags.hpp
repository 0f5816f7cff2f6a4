#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "protocol/responses/answer_writer.hpp"

namespace skein::protocol {

/// The tool calls in a text, and the rest of the text.
struct tagged_text {
  std::string rest;  ///< trimmed
  std::vector<tool_call> calls;
};

/// Finds `<tool_call>{"name":...,"arguments":{...}}</tool_call>` (`tags`) and lines `@@tool {...}` (`lines`). Invalid
/// calls stay in the text.
[[nodiscard]] tagged_text find_tool_calls(std::string_view text, bool tags, bool lines);

/// As chat_writer, for whole answers: tool calls in the text become members of the message.
[[nodiscard]] std::shared_ptr<const answer_writer> tool_tag_writer(bool tags, bool lines);

}  // namespace skein::protocol
