#include "protocol/responses/answer_parts.hpp"

#include <algorithm>
#include <cmath>

#include "base/utf8.hpp"

namespace skein::protocol {
namespace {

constexpr std::string_view hex = "0123456789abcdef";

void append_hex(std::string& out, std::uint8_t byte) {
  out += hex[byte >> 4];
  out += hex[byte & 15];
}

}  // namespace

std::string answer_id(std::string_view prefix, const std::array<std::uint8_t, 12>& random) {
  std::string id(prefix);
  for (const auto byte : random) append_hex(id, byte);
  return id;
}

std::string call_id(std::string_view answer, std::uint32_t index, std::uint32_t number) {
  constexpr std::size_t kept = 24;  // random digits at the end of every id
  const auto random = answer.substr(answer.size() - std::min(kept, answer.size()));
  return "call_" + std::string(random) + '_' + std::to_string(index) + '_' + std::to_string(number);
}

bool is_parked(std::string_view stop_reason) {
  return stop_reason == "drain" || stop_reason == "timeout" || stop_reason == "client_gone";
}

std::string_view to_string(finish_reason reason) {
  switch (reason) {
    case finish_reason::stop: return "stop";
    case finish_reason::length: return "length";
    case finish_reason::tool_calls: return "tool_calls";
  }
  return "";
}

void write_head(json_writer& out, const answer_head& head, std::string_view object) {
  out.key("id").value(head.id).key("object").value(object).key("created").value(head.created);
  out.key("model").value(head.model).key("system_fingerprint");
  head.system_fingerprint.empty() ? out.null() : out.value(head.system_fingerprint);
}

void write_notes(json_writer& out, const answer_head& head) {
  if (head.constraint_notes.empty() && head.tool_notes.empty()) return;
  out.key("metadata").begin_object();
  if (!head.constraint_notes.empty()) out.key(constraint_notes_key).value(head.constraint_notes);
  if (!head.tool_notes.empty()) out.key(tool_notes_key).value(head.tool_notes);
  out.end_object();
}

void write_usage(json_writer& out, const token_usage& usage) {
  out.key("usage").begin_object();
  out.key("prompt_tokens").value(usage.prompt_tokens);
  out.key("completion_tokens").value(usage.completion_tokens);
  out.key("total_tokens").value(usage.prompt_tokens + usage.completion_tokens);
  out.key("prompt_tokens_details").begin_object().key("cached_tokens").value(usage.cached_tokens).end_object();
  out.key("completion_tokens_details").begin_object();
  out.key("reasoning_tokens").value(usage.reasoning_tokens).end_object();
  out.end_object();
}

void write_end(json_writer& out, const answer_end* end) {
  out.key("finish_reason");
  if (end)
    out.value(to_string(end->reason));
  else
    out.null();
  out.key("stop_reason");
  if (end && std::holds_alternative<std::string>(end->stop_reason))
    out.value(std::get<std::string>(end->stop_reason));
  else if (end && std::holds_alternative<token_id>(end->stop_reason))
    out.value(std::get<token_id>(end->stop_reason));
  else
    out.null();
}

void write_administrative(json_writer& out, const answer_end& end) {
  if (!end.administrative) return;
  out.key("rwkv").begin_object();
  out.key("stop_reason").value(end.administrative->stop_reason);
  out.key("request_id").value(end.administrative->request_id);
  out.end_object();
}

void write_session(json_writer& out, const session_note* session) {
  if (!session) return;
  out.key("session").begin_object();
  out.key("id").value(session->id).key("version").value(session->version);
  if (session->stored)
    out.key("durable").value(session->durable);
  else
    out.key("stored").value(false);
  if (session->replayed) out.key("replayed").value(true);
  if (session->unfinished) out.key("unfinished").value(true);
  out.end_object();
}

std::string token_text(std::string_view bytes) {
  if (is_utf8(bytes)) return std::string(bytes);
  std::string text = "bytes:";
  for (const char byte : bytes) append_hex(text += "\\x", static_cast<std::uint8_t>(byte));
  return text;
}

std::string usage_event(const answer_shape& shape, const answer_head& head, const token_usage& usage,
                        const session_note* session) {
  std::string json;
  json_writer out(json);
  out.begin_object();
  write_head(out, head, shape.event_object);
  out.key("choices").begin_array().end_array();
  write_usage(out, usage);
  write_session(out, session);
  out.end_object();
  return json;
}

float finite_logprob(float logprob) { return std::isfinite(logprob) ? std::max(logprob, -9999.0f) : -9999.0f; }

}  // namespace skein::protocol
