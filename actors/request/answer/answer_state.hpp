#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/device/device_mailbox.hpp"
#include "actors/request/answer/answer_budget.hpp"
#include "actors/request/answer/answer_row.hpp"
#include "actors/request/answer/answer_scores.hpp"
#include "actors/request/answer/answer_stream.hpp"
#include "actors/request/answer/prepare.hpp"
#include "actors/request/answer/row_text.hpp"
#include "protocol/responses/answer_writer.hpp"

namespace skein::request {

/// All rows of one call, from device events to the response: SSE text while it streams, or one body at the end. A plain
/// class: no sockets, no clock. Rows are numbered prompt * rows_per_prompt + row.
class answer_state {
 public:
  /// `model` outlives this. `request_name` is the X-Request-Id, for administrative stops.
  answer_state(prepared_call call, const served_model& model, protocol::answer_head head, std::string request_name);

  /// answer_budget::take_frame. Call it before all events.
  [[nodiscard]] result<void> make_room_for_frame(const protocol::request_limits& limits) {
    return budget_.take_frame(call_, head_, request_name_, limits);
  }

  /// The prompt has its slots: its tokens will not be sent again, and a stream may begin.
  void on_admitted(std::uint32_t prompt);
  void on_prompt_scored(std::uint32_t prompt, const std::vector<sampling::token_logprobs>& scores) {
    scores_.add(prompt, scores);
  }
  /// True if this token's text ends the row (a stop string): the device should sample no more tokens for it.
  [[nodiscard]] bool on_token(std::uint32_t prompt, std::uint32_t row, token_id token,
                              const sampling::token_logprobs* logprobs);
  void on_row_finished(std::uint32_t prompt, std::uint32_t row, device::finish_cause cause);

  /// Ends every row that still runs, on an operator's order.
  void stop(std::string_view why);

  /// Every row has ended.
  [[nodiscard]] std::size_t rows() const { return rows_.size(); }
  [[nodiscard]] bool over() const { return rows_left_ == 0; }
  /// SSE text that became ready since the last call; deltas of several rows share events. Ends with "[DONE]" when over;
  /// for sessions, when concluded. Streams only.
  [[nodiscard]] std::string take_stream();
  /// The whole answer; once, when over.
  [[nodiscard]] std::string body();

  /// The row's answer, for sessions and for requests that may be paused. Its text is final when the row is over.
  struct kept_row {
    std::vector<token_id> sampled;    ///< without the stop id
    std::uint64_t visible_bytes = 0;  ///< of their text: row_text::visible_bytes
    std::string reasoning, content;   ///< as the client got them
    protocol::answer_end end;
  };
  [[nodiscard]] const kept_row& kept() const { return kept_; }
  /// Continues an earlier answer after these tokens, whose text the client already has.
  void continue_after(const std::vector<token_id>& earlier);
  /// Tokens that the device may sample for each row beyond the requested number, since they will not count. This class
  /// ends the row when its budget is used.
  [[nodiscard]] std::uint32_t hidden_budget() const { return hidden_budget_; }
  /// row_text::hidden_tokens of the only row.
  [[nodiscard]] std::uint32_t hidden_tokens() const { return rows_.front().text.hidden_tokens(); }
  /// row_text::certain_bytes of the only row.
  [[nodiscard]] std::uint64_t certain_bytes() const;
  [[nodiscard]] const protocol::answer_head& head() const { return head_; }
  /// What the log keeps of it besides its texts: answer_writer::remembered.
  [[nodiscard]] std::string remembered() const { return call_.request.writer->remembered(head_, usage()); }
  /// Ends a stream that failed: answer_writer::failure_events.
  [[nodiscard]] std::string failure(const error& why, std::string_view body) const {
    return call_.request.writer->failure_events(head_, why, body);
  }
  /// The turn is stored: releases the last events, or the body, with this note.
  void conclude(protocol::session_note note);

  [[nodiscard]] const prepared_call& call() const { return call_; }
  /// The tokens of a prompt, for the device. The answer keeps a copy to echo them, to resume after a pause and, if
  /// there are several prompts, until the prompt is admitted, since the device may send it back.
  [[nodiscard]] std::vector<token_id> give_prompt(std::uint32_t prompt);
  [[nodiscard]] protocol::token_usage usage() const;
  /// Sessions and prefixes: the number of prompt tokens, and how many of them came from a stored state.
  void count_prompt(std::uint64_t tokens, std::uint64_t cached);
  /// "stop", "length" or the administrative reason that ended the first row, for the log.
  [[nodiscard]] std::string_view finish_word() const;

 private:
  [[nodiscard]] std::size_t number_of(std::uint32_t prompt, std::uint32_t row) const;
  [[nodiscard]] answer_row& at(std::uint32_t prompt, std::uint32_t row) { return rows_.at(number_of(prompt, row)); }
  void begin_row(std::uint32_t prompt, std::uint32_t row);
  void send_piece(std::uint32_t prompt, std::uint32_t row);
  void write_stream();
  void end_row(std::uint32_t prompt, std::uint32_t row, protocol::answer_end end);
  [[nodiscard]] std::string echo_text(std::uint32_t prompt) const;
  [[nodiscard]] std::vector<std::uint32_t> best_rows(std::uint32_t prompt) const;
  [[nodiscard]] protocol::whole_row whole(std::uint32_t prompt, std::uint32_t row, std::uint32_t index);
  [[nodiscard]] bool is_kept() const { return call_.request.session.has_value(); }
  void collect(std::uint32_t prompt, std::uint32_t row);
  void keep(const row_text::piece& piece);
  void keep(token_id token);
  [[nodiscard]] const protocol::session_note* note() const { return note_ ? &*note_ : nullptr; }

  void set_hidden_budget();

  prepared_call call_;
  const served_model& model_;
  protocol::answer_head head_;
  std::string request_name_;
  std::vector<answer_row> rows_;
  answer_stream stream_;  // for streams
  answer_scores scores_;
  answer_budget budget_;
  std::uint64_t prompt_tokens_ = 0, cached_tokens_ = 0;
  kept_row kept_;
  std::optional<protocol::session_note> note_;
  std::uint32_t rows_left_ = 0, hidden_budget_ = 0;
};

}  // namespace skein::request
