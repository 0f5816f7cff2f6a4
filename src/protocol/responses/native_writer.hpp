#pragma once
#include <string_view>

#include "protocol/responses/answer_writer.hpp"

namespace skein::protocol {

/// Answers of the older servers' own routes, with additional members that their clients tolerate: id, created, model,
/// usage and the real finish reason. A stream has delta events, and a final event for every row as soon as it ends.
class native_writer final : public answer_writer {
 public:
  /// Whether rows with new text share an event or each has its own; in the second case the stream's id is the request's
  /// name.
  enum class events : std::uint8_t { shared, of_one_row };

  explicit native_writer(std::string_view whole_id, events form = events::shared,
                         std::string_view body_object = "chat.completion")
      : whole_id_(whole_id), body_object_(body_object), form_(form) {}

  [[nodiscard]] std::string id(const answer_names& names) const override;
  [[nodiscard]] std::string delta_events(const answer_head& head, std::span<const row_delta> rows) const override;
  [[nodiscard]] std::string end_event(const answer_head& head, std::uint32_t index, const answer_end& end,
                                      const session_note* session) const override;
  [[nodiscard]] std::string last_events(const answer_head& head, const token_usage& usage,
                                        const session_note* session) const override;
  [[nodiscard]] std::string body(const answer_head& head, std::vector<whole_row> rows, const token_usage& usage,
                                 const session_note* session) const override;

 private:
  std::string_view whole_id_, body_object_;
  events form_;
};

}  // namespace skein::protocol
