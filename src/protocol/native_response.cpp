#include "protocol/native_response.hpp"

#include "protocol/answer_parts.hpp"

namespace skein::protocol {
namespace {

constexpr std::string_view event_object = "chat.completion.chunk";

void write_finish(json_writer& out, const answer_end& end) {
  out.key("finish_reason").value(end.reason == finish_reason::stop ? "stop" : "length");
}

void write_branch(json_writer& out, const session_note& session) {
  out.key("dialogue_idx").value(session.version).key("parent").value(*session.parent);
}

}  // namespace

std::string native_body(const answer_head& head, std::span<const native_choice> choices, const token_usage& usage,
                        const session_note* session) {
  std::string json;
  json_writer out(json);
  out.begin_object();
  write_head(out, head, "chat.completion");
  out.key("choices").begin_array();
  const answer_end* administrative = nullptr;
  for (const auto& choice : choices) {
    out.begin_object().key("index").value(choice.index);
    out.key("message").begin_object().key("role").value("assistant").key("content").value(choice.content).end_object();
    write_finish(out, choice.end);
    out.end_object();
    if (!administrative && choice.end.administrative) administrative = &choice.end;
  }
  out.end_array();
  write_usage(out, usage);
  if (administrative) write_administrative(out, *administrative);
  if (session && session->parent) write_branch(out, *session);
  write_session(out, session);
  out.end_object();
  return json;
}

std::string native_delta_event(const answer_head& head, std::span<const native_delta> rows) {
  std::string json;
  json_writer out(json);
  out.begin_object();
  write_head(out, head, event_object);
  out.key("choices").begin_array();
  for (const auto& row : rows) {
    out.begin_object().key("index").value(row.index);
    out.key("delta").begin_object().key("content").value(row.content).end_object().end_object();
  }
  out.end_array().end_object();
  return json;
}

std::string native_final_event(const answer_head& head, std::uint32_t index, const answer_end& end,
                               const session_note* session) {
  std::string json;
  json_writer out(json);
  out.begin_object();
  write_head(out, head, event_object);
  out.key("choices").begin_array().begin_object().key("index").value(index);
  out.key("delta").begin_object().end_object();
  write_finish(out, end);
  out.end_object().end_array();
  write_administrative(out, end);
  write_session(out, session);
  out.end_object();
  return json;
}

std::string native_branch_event(const session_note& session) {
  std::string json;
  json_writer out(json);
  out.begin_object().key("object").value("multi_state.dialogue_idx");
  out.key("session_id").value(session.id + ':' + std::to_string(session.version));
  write_branch(out, session);
  out.end_object();
  return json;
}

}  // namespace skein::protocol
