#include "protocol/chat_response.hpp"

#include "protocol/answer_parts.hpp"

namespace skein::protocol {
namespace {

constexpr std::string_view chunk_object = "chat.completion.chunk";

void write_token(json_writer& out, std::string_view bytes, float logprob) {
  out.key("token").value(token_text(bytes));
  out.key("logprob").value(finite_logprob(logprob));
  out.key("bytes").begin_array();
  for (const char byte : bytes) out.value(static_cast<std::uint8_t>(byte));
  out.end_array();
}

void write_logprobs(json_writer& out, std::span<const logprob_entry> entries) {
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

void write_choice(json_writer& out, const chat_choice& choice) {
  out.begin_object().key("index").value(choice.index);
  out.key("message").begin_object().key("role").value("assistant");
  out.key("content").value(choice.content);
  if (!choice.reasoning.empty()) out.key("reasoning_content").value(choice.reasoning);
  out.end_object();
  out.key("logprobs");
  if (choice.logprobs)
    write_logprobs(out, *choice.logprobs);
  else
    out.null();
  write_end(out, &choice.end);
  out.end_object();
}

/// One event with one choice; `write_delta(out)` writes the members of its delta.
template <typename WriteDelta>
std::string chunk(const answer_head& head, std::uint32_t index, std::span<const logprob_entry> logprobs,
                  const answer_end* end, bool usage_follows, WriteDelta write_delta) {
  std::string json;
  json_writer out(json);
  out.begin_object();
  write_head(out, head, chunk_object);
  out.key("choices").begin_array().begin_object().key("index").value(index);
  out.key("delta").begin_object();
  write_delta(out);
  out.end_object();
  out.key("logprobs");
  if (logprobs.empty())
    out.null();
  else
    write_logprobs(out, logprobs);
  write_end(out, end);
  out.end_object().end_array();
  if (usage_follows) out.key("usage").null();
  if (end) write_administrative(out, *end);
  out.end_object();
  return json;
}

}  // namespace

std::string chat_body(const answer_head& head, std::span<const chat_choice> choices, const token_usage& usage) {
  std::string json;
  json_writer out(json);
  out.begin_object();
  write_head(out, head, "chat.completion");
  out.key("choices").begin_array();
  for (const auto& choice : choices) write_choice(out, choice);
  out.end_array();
  write_usage(out, usage);
  if (const auto* end = administrative_end(choices)) write_administrative(out, *end);
  out.end_object();
  return json;
}

std::string chat_role_chunk(const answer_head& head, std::uint32_t index, bool usage_follows) {
  return chunk(head, index, {}, nullptr, usage_follows,
               [](json_writer& out) { out.key("role").value("assistant").key("content").value(""); });
}

std::string chat_delta_chunk(const answer_head& head, const chat_delta& delta, bool usage_follows) {
  return chunk(head, delta.index, delta.logprobs, nullptr, usage_follows, [&](json_writer& out) {
    if (!delta.reasoning.empty()) out.key("reasoning_content").value(delta.reasoning);
    if (!delta.content.empty()) out.key("content").value(delta.content);
  });
}

std::string chat_final_chunk(const answer_head& head, std::uint32_t index, const answer_end& end, bool usage_follows) {
  return chunk(head, index, {}, &end, usage_follows, [](json_writer&) {});
}

std::string chat_usage_chunk(const answer_head& head, const token_usage& usage) {
  std::string json;
  json_writer out(json);
  out.begin_object();
  write_head(out, head, chunk_object);
  out.key("choices").begin_array().end_array();
  write_usage(out, usage);
  out.end_object();
  return json;
}

}  // namespace skein::protocol
