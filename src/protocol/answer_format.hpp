#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/answer.hpp"

namespace skein::protocol {

/// One row of a whole answer, for any shape.
struct whole_row {
  std::uint32_t index = 0;
  std::string reasoning;  ///< chat only
  std::string content;
  std::optional<std::vector<logprob_entry>> logprobs;
  answer_end end;
};

/// What one event adds to a row.
struct row_delta {
  std::uint32_t index = 0;
  std::string_view reasoning, content;
  std::span<const logprob_entry> logprobs = {};
};

/// How answers of one call are written: the shapes of all routes behind one set of words. Events come framed for SSE.
class answer_format {
 public:
  answer_format(api shape, answer_head head, bool usage_follows)
      : shape_(shape), head_(std::move(head)), usage_follows_(usage_follows) {}

  /// The first event of a row; empty where the shape has none.
  [[nodiscard]] std::string begin_event(std::uint32_t index) const;
  [[nodiscard]] std::string delta_event(const row_delta& delta) const;
  [[nodiscard]] std::string end_event(std::uint32_t index, const answer_end& end, const session_note* session) const;
  /// What ends the stream: usage, if it was asked for, and [DONE].
  [[nodiscard]] std::string last_events(const token_usage& usage, const session_note* session) const;
  [[nodiscard]] std::string body(std::vector<whole_row> rows, const token_usage& usage,
                                 const session_note* session) const;

 private:
  api shape_;
  answer_head head_;
  bool usage_follows_;
};

}  // namespace skein::protocol
