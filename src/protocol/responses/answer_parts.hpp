#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "protocol/json/json_writer.hpp"
#include "protocol/responses/answer.hpp"

/// The common part of both routes' answers: the frame of a body and of an event, and pieces of their JSON. A route adds
/// its answer_shape and a function that writes the text of a choice.
namespace skein::protocol {

struct answer_shape {
  std::string_view body_object, event_object;  ///< the member `object`
  void (*write_logprobs)(json_writer& out, std::span<const logprob_entry> entries);
};

/// The first members of every body and event: id, object, created, model, system_fingerprint.
void write_head(json_writer& out, const answer_head& head, std::string_view object);

/// The member `metadata`, if there are notes on the constraint or the tools.
void write_notes(json_writer& out, const answer_head& head);

/// The member `usage`.
void write_usage(json_writer& out, const token_usage& usage);

/// The members finish_reason and stop_reason of a choice; both null until it ends.
void write_end(json_writer& out, const answer_end* end);

/// The member `rwkv`, if the end was administrative.
void write_administrative(json_writer& out, const answer_end& end);

/// The member `session`, if there is one.
void write_session(json_writer& out, const session_note* session);

/// A token for a JSON string: its text, or "bytes:\xe4\xbd" if that is not UTF-8.
[[nodiscard]] std::string token_text(std::string_view bytes);

/// A log-probability for JSON, which has no infinity: -inf becomes -9999.
[[nodiscard]] float finite_logprob(float logprob);

/// One element of `choices`. logprobs: nullopt writes null. end: null if the choice is still running.
template <typename WriteText>
void write_choice(json_writer& out, const answer_shape& shape, std::uint32_t index,
                  std::optional<std::span<const logprob_entry>> logprobs, const answer_end* end, WriteText write_text) {
  out.begin_object().key("index").value(index);
  write_text(out);
  out.key("logprobs");
  if (logprobs)
    shape.write_logprobs(out, *logprobs);
  else
    out.null();
  write_end(out, end);
  out.end_object();
}

/// A whole answer; `write_text(out, choice)` writes the text of one choice. The member `rwkv` reports the first
/// administrative end.
template <typename Choice, typename WriteText>
[[nodiscard]] std::string answer_body(const answer_shape& shape, const answer_head& head,
                                      std::span<const Choice> choices, const token_usage& usage,
                                      const session_note* session, WriteText write_text) {
  std::string json;
  json_writer out(json);
  out.begin_object();
  write_head(out, head, shape.body_object);
  out.key("choices").begin_array();
  const answer_end* administrative = nullptr;
  for (const auto& choice : choices) {
    write_choice(out, shape, choice.index, choice.logprobs, &choice.end,
                 [&](json_writer& to) { write_text(to, choice); });
    if (!administrative && choice.end.administrative) administrative = &choice.end;
  }
  out.end_array();
  write_usage(out, usage);
  if (administrative) write_administrative(out, *administrative);
  write_notes(out, head);
  write_session(out, session);
  out.end_object();
  return json;
}

/// The fields of a choice in one event, except its text.
struct choice_event {
  std::uint32_t index = 0;
  std::span<const logprob_entry> logprobs = {};  ///< empty: null
  const answer_end* end = nullptr;               ///< null: still running
  bool usage_follows = false;                    ///< a usage event comes at the end of the stream
  const session_note* session = nullptr;
};

/// An event with one choice; `write_text(out)` writes the added text.
template <typename WriteText>
[[nodiscard]] std::string answer_event(const answer_shape& shape, const answer_head& head, const choice_event& event,
                                       WriteText write_text) {
  std::string json;
  json_writer out(json);
  out.begin_object();
  write_head(out, head, shape.event_object);
  out.key("choices").begin_array();
  const auto logprobs = event.logprobs.empty() ? std::nullopt : std::optional(event.logprobs);
  write_choice(out, shape, event.index, logprobs, event.end, write_text);
  out.end_array();
  if (event.usage_follows) out.key("usage").null();
  if (event.end) write_administrative(out, *event.end);
  if (event.end) write_notes(out, head);
  write_session(out, event.session);
  out.end_object();
  return json;
}

/// The last event of a stream, with usage.
[[nodiscard]] std::string usage_event(const answer_shape& shape, const answer_head& head, const token_usage& usage,
                                      const session_note* session = nullptr);

}  // namespace skein::protocol
