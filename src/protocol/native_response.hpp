#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "protocol/answer.hpp"

/// JSON of the older servers' own routes, with what their clients tolerate on top: id, created, model and a truthful
/// end. A stream is delta events, in each all rows that have text, and a final event for every row as soon as it ends.
namespace skein::protocol {

struct native_choice {
  std::uint32_t index = 0;
  std::string_view content;
  answer_end end;
};

/// The whole answer. A session's branch also tells its dialogue_idx and parent.
[[nodiscard]] std::string native_body(const answer_head& head, std::span<const native_choice> choices,
                                      const token_usage& usage, const session_note* session = nullptr);

struct native_delta {
  std::uint32_t index = 0;
  std::string_view content;
};
[[nodiscard]] std::string native_delta_event(const answer_head& head, std::span<const native_delta> rows);
[[nodiscard]] std::string native_final_event(const answer_head& head, std::uint32_t index, const answer_end& end,
                                             const session_note* session = nullptr);
/// What comes right before [DONE] where the session branches.
[[nodiscard]] std::string native_branch_event(const session_note& session);

}  // namespace skein::protocol
