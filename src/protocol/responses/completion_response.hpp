#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/responses/answer.hpp"

/// JSON of /v1/completions. A stream has, for every index, text chunks and a final chunk, then one usage chunk if
/// requested (`usage_follows` marks the chunks before it with usage:null).
namespace skein::protocol {

struct completion_choice {
  std::uint32_t index = 0;
  std::string text;
  std::optional<std::vector<logprob_entry>> logprobs;
  answer_end end;
};

/// The whole answer.
[[nodiscard]] std::string completion_body(const answer_head& head, std::span<const completion_choice> choices,
                                          const token_usage& usage, const session_note* session = nullptr);

/// The text that one event adds to a choice.
struct completion_delta {
  std::uint32_t index = 0;
  std::string_view text;
  std::span<const logprob_entry> logprobs;  ///< empty: null
};

[[nodiscard]] std::string completion_chunk(const answer_head& head, const completion_delta& delta, bool usage_follows);
[[nodiscard]] std::string completion_final_chunk(const answer_head& head, std::uint32_t index, const answer_end& end,
                                                 bool usage_follows, const session_note* session = nullptr);
[[nodiscard]] std::string completion_usage_chunk(const answer_head& head, const token_usage& usage,
                                                 const session_note* session = nullptr);

}  // namespace skein::protocol
