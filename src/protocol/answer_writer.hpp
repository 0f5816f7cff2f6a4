#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "protocol/answer.hpp"

namespace skein::protocol {

/// One row of a whole answer.
struct whole_row {
  std::uint32_t index = 0;
  std::string reasoning;  ///< chat only
  std::string content;
  std::optional<std::vector<logprob_entry>> logprobs;
  answer_end end;
  std::vector<tool_call> tool_calls = {};  ///< chat only
};

/// What an event adds to a row.
struct row_delta {
  std::uint32_t index = 0;
  std::string_view reasoning, content;
  std::span<const logprob_entry> logprobs = {};
};

/// What an answer's id may be made of.
struct answer_names {
  std::string_view request_name;  ///< X-Request-Id
  bool streamed = false;
  std::array<std::uint8_t, 12> random{};
  std::string_view turn = {};  ///< the key of the session's turn; empty: none
};

/// How the answers of one dialect are written: one body, or a stream of events, which come framed for SSE.
class answer_writer {
 public:
  virtual ~answer_writer() = default;

  [[nodiscard]] virtual std::string id(const answer_names& names) const = 0;
  /// The first event of a row; empty where there is none.
  [[nodiscard]] virtual std::string begin_event(const answer_head&, std::uint32_t /*index*/) const { return {}; }
  /// What several rows got at one time, each of them once, in the order of their indexes.
  [[nodiscard]] virtual std::string delta_events(const answer_head& head, std::span<const row_delta> rows) const = 0;
  [[nodiscard]] virtual std::string end_event(const answer_head& head, std::uint32_t index, const answer_end& end,
                                              const session_note* session) const = 0;
  /// What ends the stream: usage, if it was asked for, and [DONE].
  [[nodiscard]] virtual std::string last_events(const answer_head& head, const token_usage& usage,
                                                const session_note* session) const = 0;
  [[nodiscard]] virtual std::string body(const answer_head& head, std::vector<whole_row> rows, const token_usage& usage,
                                         const session_note* session) const = 0;
  /// What ends a stream that failed; `body` is what an answer with a status would say.
  [[nodiscard]] virtual std::string failure_events(const answer_head& head, const error& why,
                                                   std::string_view body) const;
  /// What was told so far, from the event behind number `after` on, for somebody who comes late; empty: events have no
  /// numbers.
  [[nodiscard]] virtual std::string told_again(const answer_head&, std::optional<std::uint64_t> /*after*/) const {
    return {};
  }
  /// A body that says that the answer is not there yet; `begun`: it has a slot.
  [[nodiscard]] virtual std::string early_body(const answer_head&, bool /*begun*/) const { return {}; }
  /// What the log is to keep of the answer beside its texts, as a JSON object; empty: nothing.
  [[nodiscard]] virtual std::string remembered(const answer_head&, const token_usage&) const { return {}; }
};

/// A writer that lasts as long as the program, as requests hold theirs.
[[nodiscard]] inline std::shared_ptr<const answer_writer> lasting(const answer_writer& writer) {
  return {std::shared_ptr<void>(), &writer};
}

/// The writers of /v1/chat/completions and /v1/completions.
[[nodiscard]] const answer_writer& chat_writer();
[[nodiscard]] const answer_writer& completion_writer();

}  // namespace skein::protocol
