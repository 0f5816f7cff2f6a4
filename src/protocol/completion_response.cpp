#include "protocol/completion_response.hpp"

#include <algorithm>

#include "protocol/answer_parts.hpp"

namespace skein::protocol {
namespace {

constexpr std::string_view object = "text_completion";

/// {"token":logprob,...}; of tokens with equal text only the best is named, since a name may stand once.
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

void write_logprobs(json_writer& out, std::span<const logprob_entry> entries) {
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

std::string chunk(const answer_head& head, const completion_delta& delta, const answer_end* end, bool usage_follows) {
  std::string json;
  json_writer out(json);
  out.begin_object();
  write_head(out, head, object);
  out.key("choices").begin_array().begin_object();
  out.key("index").value(delta.index).key("text").value(delta.text).key("logprobs");
  if (delta.logprobs.empty())
    out.null();
  else
    write_logprobs(out, delta.logprobs);
  write_end(out, end);
  out.end_object().end_array();
  if (usage_follows) out.key("usage").null();
  if (end) write_administrative(out, *end);
  out.end_object();
  return json;
}

}  // namespace

std::string completion_body(const answer_head& head, std::span<const completion_choice> choices,
                            const token_usage& usage) {
  std::string json;
  json_writer out(json);
  out.begin_object();
  write_head(out, head, object);
  out.key("choices").begin_array();
  for (const auto& choice : choices) {
    out.begin_object().key("index").value(choice.index).key("text").value(choice.text).key("logprobs");
    if (choice.logprobs)
      write_logprobs(out, *choice.logprobs);
    else
      out.null();
    write_end(out, &choice.end);
    out.end_object();
  }
  out.end_array();
  write_usage(out, usage);
  if (const auto* end = administrative_end(choices)) write_administrative(out, *end);
  out.end_object();
  return json;
}

std::string completion_chunk(const answer_head& head, const completion_delta& delta, bool usage_follows) {
  return chunk(head, delta, nullptr, usage_follows);
}

std::string completion_final_chunk(const answer_head& head, std::uint32_t index, const answer_end& end,
                                   bool usage_follows) {
  return chunk(head, {index, "", {}}, &end, usage_follows);
}

std::string completion_usage_chunk(const answer_head& head, const token_usage& usage) {
  std::string json;
  json_writer out(json);
  out.begin_object();
  write_head(out, head, object);
  out.key("choices").begin_array().end_array();
  write_usage(out, usage);
  out.end_object();
  return json;
}

}  // namespace skein::protocol
