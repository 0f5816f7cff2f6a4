#include "protocol/responses/completion_response.hpp"

#include <algorithm>

#include "protocol/responses/answer_parts.hpp"

namespace skein::protocol {
namespace {

/// {"token":logprob,...}; of tokens with equal text only the best is written, because names must be unique.
void write_alternatives(json_writer& out, const logprob_entry& entry) {
  if (!entry.logprob) {
    out.null();
    return;
  }
  std::vector<std::string> named;
  out.begin_object();
  for (const auto& [bytes, logprob] : entry.top) {
    auto text = token_text(bytes);
    if (std::find(named.begin(), named.end(), text) != named.end()) continue;
    out.key(text).value(finite_logprob(logprob));
    named.push_back(std::move(text));
  }
  out.end_object();
}

void write_completion_logprobs(json_writer& out, std::span<const logprob_entry> entries) {
  out.begin_object().key("tokens").begin_array();
  for (const auto& entry : entries) out.value(token_text(entry.text));
  out.end_array().key("token_logprobs").begin_array();
  for (const auto& entry : entries) entry.logprob ? out.value(finite_logprob(*entry.logprob)) : out.null();
  out.end_array().key("top_logprobs").begin_array();
  for (const auto& entry : entries) write_alternatives(out, entry);
  out.end_array().key("text_offset").begin_array();
  for (const auto& entry : entries) out.value(entry.text_offset);
  out.end_array().end_object();
}

constexpr answer_shape completion_shape{"text_completion", "text_completion", write_completion_logprobs};

std::string text_event(const answer_head& head, const choice_event& event, std::string_view text) {
  return answer_event(completion_shape, head, event, [&](json_writer& out) { out.key("text").value(text); });
}

}  // namespace

std::string completion_body(const answer_head& head, std::span<const completion_choice> choices,
                            const token_usage& usage, const session_note* session) {
  return answer_body(completion_shape, head, choices, usage, session,
                     [](json_writer& out, const completion_choice& choice) { out.key("text").value(choice.text); });
}

std::string completion_chunk(const answer_head& head, const completion_delta& delta, bool usage_follows) {
  return text_event(head, {.index = delta.index, .logprobs = delta.logprobs, .usage_follows = usage_follows},
                    delta.text);
}

std::string completion_final_chunk(const answer_head& head, std::uint32_t index, const answer_end& end,
                                   bool usage_follows, const session_note* session) {
  return text_event(head, {.index = index, .end = &end, .usage_follows = usage_follows, .session = session}, "");
}

std::string completion_usage_chunk(const answer_head& head, const token_usage& usage, const session_note* session) {
  return usage_event(completion_shape, head, usage, session);
}

}  // namespace skein::protocol
