#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "protocol/answer.hpp"
#include "protocol/json_writer.hpp"

/// What the answers of both routes share: the frame of a body and of an event, and pieces of their JSON. A route adds
/// its answer_shape and, for each choice, a function that writes the text.
namespace skein::protocol {

struct answer_shape {
  std::string_view body_object, event_object;  ///< the member `object`
  void (*write_logprobs)(json_writer& out, std::span<const logprob_entry> entries);
};

/// id, object, created, model, system_fingerprint: the members that every body and event begins with.
void write_head(json_writer& out, const answer_head& head, std::string_view object);

/// The member `usage` with its numbers.
void write_usage(json_writer& out, const token_usage& usage);

/// The members finish_reason and stop_reason of a choice; both null while it runs.
void write_end(json_writer& out, const answer_end* end);

/// The member `rwkv`, when the end was administrative.
void write_administrative(json_writer& out, const answer_end& end);

/// The member `session`, if there is one.
void write_session(json_writer& out, const session_note* session);

/// A token as a JSON string can hold it: its text, or "bytes:\xe4\xbd" when that is no UTF-8.
[[nodiscard]] std::string token_text(std::string_view bytes);

/// A log-probability as clients take it: JSON has no infinity, so impossible is -9999.
[[nodiscard]] float finite_logprob(float logprob);

/// One element of `choices`. No logprobs: null; no end: it still runs.
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

/// A whole answer; `write_text(out, choice)` writes the text of one choice. It reports the first end that was
/// administrative.
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
  write_session(out, session);
  out.end_object();
  return json;
}

/// What one event says of a choice, beside its text.
struct choice_event {
  std::uint32_t index = 0;
  std::span<const logprob_entry> logprobs = {};  ///< empty: null
  const answer_end* end = nullptr;               ///< null: it still runs
  bool usage_follows = false;                    ///< a usage event comes at the end of the stream
  const session_note* session = nullptr;
};

/// An event with one choice; `write_text(out)` writes what it adds.
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
  write_session(out, event.session);
  out.end_object();
  return json;
}

/// The event that ends a stream with its numbers.
[[nodiscard]] std::string usage_event(const answer_shape& shape, const answer_head& head, const token_usage& usage,
                                      const session_note* session = nullptr);

}  // namespace skein::protocol
