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
#include "protocol/responses/answer.hpp"

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

/// The text that an event adds to a row.
struct row_delta {
  std::uint32_t index = 0;
  std::string_view reasoning, content;
  std::span<const logprob_entry> logprobs = {};
  std::span<const call_piece> calls = {};
};

/// Inputs for an answer's id.
struct answer_names {
  std::string_view request_name;  ///< X-Request-Id
  bool streamed = false;
  std::array<std::uint8_t, 12> random{};
  std::string_view turn = {};  ///< the key of the session's turn; empty: none
};

/// Writes the answers of one dialect: a whole body, or a stream of events framed for SSE.
class answer_writer {
 public:
  virtual ~answer_writer() = default;

  [[nodiscard]] virtual std::string id(const answer_names& names) const = 0;
  /// The first event of a row; empty if the dialect has none.
  [[nodiscard]] virtual std::string begin_event(const answer_head&, std::uint32_t /*index*/) const { return {}; }
  /// Events for new text of several rows; each row occurs once, in the order of indexes.
  [[nodiscard]] virtual std::string delta_events(const answer_head& head, std::span<const row_delta> rows) const = 0;
  [[nodiscard]] virtual std::string end_event(const answer_head& head, std::uint32_t index, const answer_end& end,
                                              const session_note* session) const = 0;
  /// The end of the stream: usage, if requested, and [DONE].
  [[nodiscard]] virtual std::string last_events(const answer_head& head, const token_usage& usage,
                                                const session_note* session) const = 0;
  [[nodiscard]] virtual std::string body(const answer_head& head, std::vector<whole_row> rows, const token_usage& usage,
                                         const session_note* session) const = 0;
  /// The end of a failed stream; `body` is the error body of a response that is not streamed.
  [[nodiscard]] virtual std::string failure_events(const answer_head& head, const error& why,
                                                   std::string_view body) const;
  /// The events written so far with numbers above `after`, for a client that connects later; empty if events have no
  /// numbers.
  [[nodiscard]] virtual std::string told_again(const answer_head&, std::optional<std::uint64_t> /*after*/) const {
    return {};
  }
  /// Approximate bytes of told_again.
  [[nodiscard]] virtual std::size_t told_again_bytes(std::optional<std::uint64_t> /*after*/) const { return 0; }
  /// Bytes of the request that the writer keeps.
  [[nodiscard]] virtual std::size_t kept_bytes() const { return 0; }
  /// A writer with the answer so far, for told_again and early_body on another thread; null if events have no numbers.
  [[nodiscard]] virtual std::shared_ptr<const answer_writer> copy() const { return nullptr; }
  /// Approximate bytes that copy() copies.
  [[nodiscard]] virtual std::size_t copied_bytes() const { return 0; }
  /// The body for an answer that is not finished; `begun`: it has a slot.
  [[nodiscard]] virtual std::string early_body(const answer_head&, bool /*begun*/) const { return {}; }
  /// Data to store with the answer besides its texts, as a JSON object; may be empty.
  [[nodiscard]] virtual std::string remembered(const answer_head&, const token_usage&) const { return {}; }
};

/// A shared_ptr to a writer with static storage, without ownership.
[[nodiscard]] inline std::shared_ptr<const answer_writer> lasting(const answer_writer& writer) {
  return {std::shared_ptr<void>(), &writer};
}

/// The writers of /v1/chat/completions and /v1/completions.
[[nodiscard]] const answer_writer& chat_writer();
[[nodiscard]] const answer_writer& completion_writer();

}  // namespace skein::protocol
