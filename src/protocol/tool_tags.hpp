#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "protocol/answer_writer.hpp"

namespace skein::protocol {

/// What a text asks tools to do, and what of it remains.
struct tagged_text {
  std::string rest;  ///< trimmed
  std::vector<tool_call> calls;
};

/// Finds `<tool_call>{"name":...,"arguments":{...}}</tool_call>` (`tags`) and lines `@@tool {...}` (`lines`). What is
/// no such JSON stays text.
[[nodiscard]] tagged_text find_tool_calls(std::string_view text, bool tags, bool lines);

/// As chat_writer, for whole answers whose text may hold tool calls; they become members of the message.
[[nodiscard]] std::shared_ptr<const answer_writer> tool_tag_writer(bool tags, bool lines);

}  // namespace skein::protocol
