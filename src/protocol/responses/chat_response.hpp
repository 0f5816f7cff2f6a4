#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/responses/answer.hpp"

/// JSON of /v1/chat/completions. A stream has, for every index, a role chunk, delta chunks and a final chunk, then one
/// usage chunk if requested (`usage_follows` marks the chunks before it with usage:null).
namespace skein::protocol {

struct chat_choice {
  std::uint32_t index = 0;
  std::string reasoning;  ///< reasoning_content; left out if empty
  std::string content;
  std::optional<std::vector<logprob_entry>> logprobs;
  answer_end end;
  std::vector<tool_call> tool_calls = {};  ///< left out if empty; otherwise an empty content is null
};

/// The whole answer.
[[nodiscard]] std::string chat_body(const answer_head& head, std::span<const chat_choice> choices,
                                    const token_usage& usage, const session_note* session = nullptr);

/// The text that one event adds to a choice; empty texts are left out.
struct chat_delta {
  std::uint32_t index = 0;
  std::string_view reasoning;
  std::string_view content;
  std::span<const logprob_entry> logprobs;  ///< empty: null
};

[[nodiscard]] std::string chat_role_chunk(const answer_head& head, std::uint32_t index, bool usage_follows);
[[nodiscard]] std::string chat_delta_chunk(const answer_head& head, const chat_delta& delta, bool usage_follows);
/// One part of a piece of a tool call.
enum class call_part : std::uint8_t { name, arguments };
[[nodiscard]] std::string chat_call_chunk(const answer_head& head, std::uint32_t index, const call_piece& piece,
                                          call_part which, bool usage_follows);
[[nodiscard]] std::string chat_final_chunk(const answer_head& head, std::uint32_t index, const answer_end& end,
                                           bool usage_follows, const session_note* session = nullptr);
[[nodiscard]] std::string chat_usage_chunk(const answer_head& head, const token_usage& usage,
                                           const session_note* session = nullptr);

}  // namespace skein::protocol
