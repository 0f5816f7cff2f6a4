#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/requests/metadata_fields.hpp"
#include "protocol/responses/answer.hpp"

/// The object `response` of the Responses API: its request, its text and its outcome.
namespace skein::protocol {

/// The request's fields that the response object repeats.
struct response_facts {
  std::string id;
  std::string model;
  std::int64_t created = 0;  ///< Unix seconds
  std::optional<std::string> instructions;
  metadata_fields metadata;
  std::string previous_response_id, conversation, effort, user;  ///< empty: not given
  std::string summary;                                           ///< empty: thoughts are content, not a summary
  std::string text_format;                                       ///< JSON; empty: text
  std::string constraint;                                        ///< constraint_to_log; empty: none
  std::string tools, tool_choice;                                ///< JSON; empty: not given
  std::vector<tool_call> calls;                                  ///< of the input, in order; without their arguments
  std::vector<std::string> answered_calls;  ///< call_id of each function_call_output of the input, in order
  bool parallel_tool_calls = true;
  std::optional<std::int64_t> max_output_tokens;
  std::optional<std::uint32_t> thought_tokens_max;
  bool store = true;
  bool background = false;
  bool auto_truncation = false;  ///< `truncation` as sent; nothing is ever cut off
  float temperature = 1, top_p = 1;
  std::uint32_t tokens_max = 0;                           ///< for the whole answer, across interruptions
  std::uint64_t hidden_before = 0;                        ///< tokens of sampled_before that usage does not count
  std::uint64_t sampled_before = 0, reasoned_before = 0;  ///< tokens sampled before the last interruption
};

/// Bytes of all texts.
[[nodiscard]] std::size_t held_bytes(const response_facts& facts);

/// The text of a response, and the steps in which it was streamed: bytes of each delta; 0 is a sequence number that
/// another event used. The steps of calls are those of their arguments, one call after the other.
struct response_text {
  std::string reasoning, content;
  std::vector<std::uint32_t> reasoning_steps, content_steps, call_steps = {};
  std::vector<tool_call> calls = {};
};

enum class response_status : std::uint8_t { queued, in_progress, completed, incomplete, cancelled, failed };
[[nodiscard]] std::string_view to_string(response_status status);

/// The reason of a response that ended at its token limit.
inline constexpr std::string_view cut_at_limit = "max_output_tokens";

/// How a response ended. An interrupted answer that can be continued is incomplete and parked.
struct response_outcome {
  response_status status = response_status::in_progress;
  std::string reason;  ///< if incomplete
  std::string failure;
  bool parked = false;
};
[[nodiscard]] response_outcome outcome_of(const answer_end& end);
/// The same from the stored reasons.
[[nodiscard]] response_outcome outcome_of(std::string_view finish_reason, std::string_view stop_reason,
                                          bool unfinished);

/// Reads the fields that the object repeats: instructions, metadata, max_output_tokens, ...
void read_facts(const object_reader& body, response_facts& out);

/// Writes the whole object. `usage` may be null.
void write_response(json_writer& out, const response_facts& facts, const response_text& text,
                    const response_outcome& outcome, const token_usage* usage, const session_note* session);

/// {"id","object":"conversation","created_at","metadata"}
[[nodiscard]] std::string conversation_object(std::string_view id, std::int64_t created,
                                              const metadata_fields& metadata);

// Items and parts, complete or at their beginning.
/// `as_summary`: the text is the summary instead of the content.
void write_reasoning_item(json_writer& out, std::string_view response, std::string_view text, response_status status,
                          bool as_summary = false);
void write_message_item(json_writer& out, std::string_view response, std::string_view text, response_status status);
/// The result of a call, as an item of an input.
void write_call_output_item(json_writer& out, std::string_view id, std::string_view call, std::string_view output);
/// A call with an id of its own.
void write_call_item(json_writer& out, std::string_view id, const tool_call& call, response_status status);
void write_call_item(json_writer& out, std::string_view response, std::size_t number, const tool_call& call,
                     response_status status);
[[nodiscard]] std::string call_item_id(std::string_view response, std::size_t number);
void write_text_part(json_writer& out, std::string_view text);
void write_reasoning_part(json_writer& out, std::string_view text, bool as_summary);

/// The data of a response that is stored besides its texts, as a JSON object.
struct remembered_response {
  response_facts facts;
  token_usage usage;
  std::vector<std::uint32_t> reasoning_steps, content_steps, call_steps;
};
void write_remembered(json_writer& out, const remembered_response& what);
/// Reads what write_remembered wrote; reports anything else to the object's fault.
[[nodiscard]] remembered_response read_remembered(const object_reader& object);

}  // namespace skein::protocol
