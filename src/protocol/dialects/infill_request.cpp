#include <algorithm>
#include <limits>
#include <optional>

#include "protocol/chat/chat_template.hpp"
#include "protocol/dialects/dialect_readers.hpp"
#include "protocol/requests/shared_fields.hpp"
#include "protocol/responses/answer_parts.hpp"
#include "protocol/responses/sse.hpp"

/// POST /infill in the format of llama-server: editors request the text between a prefix and a suffix.
namespace skein::protocol {
namespace {

/// Belongs to one request with one row: the last event of a stream has its end and usage.
class infill_writer final : public answer_writer {
 public:
  std::string id(const answer_names& names) const override { return std::string(names.request_name); }
  std::string delta_events(const answer_head&, std::span<const row_delta> rows) const override {
    std::string events;
    for (const auto& d : rows) {
      std::string json;
      json_writer out(json);
      out.begin_object().key("index").value(d.index).key("content").value(d.content).key("stop").value(false);
      out.end_object();
      events += sse_event(json);
    }
    return events;
  }
  std::string end_event(const answer_head&, std::uint32_t, const answer_end& end, const session_note*) const override {
    end_ = end;
    return {};
  }
  std::string last_events(const answer_head& head, const token_usage& usage, const session_note*) const override {
    return sse_event(whole(head, "", *end_, usage));
  }
  std::string body(const answer_head& head, std::vector<whole_row> rows, const token_usage& usage,
                   const session_note*) const override {
    return whole(head, rows.front().content, rows.front().end, usage);
  }
  std::string failure_events(const answer_head&, const error&, std::string_view body) const override {
    return sse_event(body);  // this dialect has no [DONE]
  }

 private:
  static std::string whole(const answer_head& head, std::string_view content, const answer_end& end,
                           const token_usage& usage) {
    const auto* const word = std::get_if<std::string>(&end.stop_reason);
    std::string json;
    json_writer out(json);
    out.begin_object().key("index").value(0).key("content").value(content).key("stop").value(true);
    out.key("model").value(head.model);
    out.key("tokens_predicted").value(usage.completion_tokens).key("tokens_evaluated").value(usage.prompt_tokens);
    out.key("tokens_cached").value(usage.cached_tokens).key("truncated").value(false);
    out.key("stop_type").value(end.reason == finish_reason::length ? "limit" : word ? "word" : "eos");
    out.key("stopping_word").value(word ? *word : "");
    write_administrative(out, end);
    out.end_object();
    return json;
  }

  mutable std::optional<answer_end> end_;
};

}  // namespace

void read_infill(const object_reader& body, const reading&, generation_request& out) {
  out.chat = false;
  const auto before = body.text("input_prefix"), after = body.text("input_suffix");
  for (const auto name : {"input_prefix", "input_suffix"})
    if (!body.value(name)) body.refuse(name, "is missing");
  // `prompt` is the text typed last; it continues the prefix.
  const auto typed = body.text("prompt").value_or("");
  out.prompts.push_back({fim_prompt(std::string(before.value_or("")).append(typed), after.value_or("")), {}, false});
  out.writer = std::make_shared<infill_writer>();
}

void read_infill_options(const object_reader& body, const reading& by, generation_request& out) {
  refuse_unsupported_fields(body);
  refuse_tool_use(body);
  read_one_row(body, by, out);
  const auto wanted = body.integer("n_predict", -2, std::numeric_limits<std::int64_t>::max());
  const std::int64_t most = by.limits.max_tokens_max;  // below 0: up to the limit
  if (wanted) out.sampling.max_tokens = static_cast<std::uint32_t>(*wanted < 0 ? most : std::min(*wanted, most));
}

}  // namespace skein::protocol
