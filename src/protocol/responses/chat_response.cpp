#include "protocol/responses/chat_response.hpp"

#include "protocol/responses/answer_parts.hpp"

namespace skein::protocol {
namespace {

void write_token(json_writer& out, std::string_view bytes, float logprob) {
  out.key("token").value(token_text(bytes));
  out.key("logprob").value(finite_logprob(logprob));
  out.key("bytes").begin_array();
  for (const char byte : bytes) out.value(static_cast<std::uint8_t>(byte));
  out.end_array();
}

void write_chat_logprobs(json_writer& out, std::span<const logprob_entry> entries) {
  out.begin_object().key("content").begin_array();
  for (const auto& entry : entries) {
    out.begin_object();
    write_token(out, entry.text, entry.logprob.value_or(0.0f));
    out.key("top_logprobs").begin_array();
    for (const auto& [text, logprob] : entry.top) {
      out.begin_object();
      write_token(out, text, logprob);
      out.end_object();
    }
    out.end_array().end_object();
  }
  out.end_array().end_object();
}

void write_tool_calls(json_writer& out, std::span<const tool_call> calls) {
  out.key("tool_calls").begin_array();
  for (const auto& call : calls) {
    out.begin_object().key("id").value(call.id).key("type").value("function");
    out.key("function").begin_object().key("name").value(call.name).key("arguments").value(call.arguments).end_object();
    out.end_object();
  }
  out.end_array();
}

constexpr answer_shape chat_shape{"chat.completion", "chat.completion.chunk", write_chat_logprobs};

/// An event whose delta has the members that `write(out)` writes.
template <typename Write>
std::string delta_event(const answer_head& head, const choice_event& event, Write write) {
  return answer_event(chat_shape, head, event, [&](json_writer& out) {
    out.key("delta").begin_object();
    write(out);
    out.end_object();
  });
}

}  // namespace

std::string chat_body(const answer_head& head, std::span<const chat_choice> choices, const token_usage& usage,
                      const session_note* session) {
  return answer_body(chat_shape, head, choices, usage, session, [](json_writer& out, const chat_choice& choice) {
    out.key("message").begin_object().key("role").value("assistant");
    out.key("content");
    choice.content.empty() && !choice.tool_calls.empty() ? out.null() : out.value(choice.content);
    if (!choice.tool_calls.empty()) write_tool_calls(out, choice.tool_calls);
    if (!choice.reasoning.empty()) out.key("reasoning_content").value(choice.reasoning);
    out.end_object();
  });
}

std::string chat_role_chunk(const answer_head& head, std::uint32_t index, bool usage_follows) {
  return delta_event(head, {.index = index, .usage_follows = usage_follows},
                     [](json_writer& out) { out.key("role").value("assistant").key("content").value(""); });
}

std::string chat_delta_chunk(const answer_head& head, const chat_delta& delta, bool usage_follows) {
  return delta_event(head, {.index = delta.index, .logprobs = delta.logprobs, .usage_follows = usage_follows},
                     [&](json_writer& out) {
                       if (!delta.reasoning.empty()) out.key("reasoning_content").value(delta.reasoning);
                       if (!delta.content.empty()) out.key("content").value(delta.content);
                     });
}

std::string chat_call_chunk(const answer_head& head, std::uint32_t index, const call_piece& piece, call_part which,
                            bool usage_follows) {
  return delta_event(head, {.index = index, .usage_follows = usage_follows}, [&](json_writer& out) {
    out.key("tool_calls").begin_array().begin_object().key("index").value(piece.number);
    if (which == call_part::name) {
      out.key("id").value(piece.id).key("type").value("function").key("function").begin_object();
      out.key("name").value(piece.name).key("arguments").value("").end_object();
    } else {
      out.key("function").begin_object().key("arguments").value(piece.arguments).end_object();
    }
    out.end_object().end_array();
  });
}

std::string chat_final_chunk(const answer_head& head, std::uint32_t index, const answer_end& end, bool usage_follows,
                             const session_note* session) {
  return delta_event(head, {.index = index, .end = &end, .usage_follows = usage_follows, .session = session},
                     [](json_writer&) {});
}

std::string chat_usage_chunk(const answer_head& head, const token_usage& usage, const session_note* session) {
  return usage_event(chat_shape, head, usage, session);
}

}  // namespace skein::protocol
