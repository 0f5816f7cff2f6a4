#include "protocol/responses_api/response_object.hpp"

#include <limits>

#include "protocol/chat/tool_list.hpp"
#include "protocol/json/json_copy.hpp"
#include "protocol/responses/answer_parts.hpp"
#include "protocol/responses_api/response_id.hpp"

namespace skein::protocol {
namespace {

void write_or_null(json_writer& out, std::string_view text) { text.empty() ? out.null() : out.value(text); }

/// Writes the request's fields; they have the same names as in a request.
void write_facts(json_writer& out, const response_facts& f) {
  out.key("background").value(f.background);
  out.key("instructions");
  f.instructions ? out.value(*f.instructions) : out.null();
  out.key("max_output_tokens");
  f.max_output_tokens ? out.value(*f.max_output_tokens) : out.null();
  write_metadata(out.key("metadata"), f.metadata);
  write_or_null(out.key("previous_response_id"), f.previous_response_id);
  out.key("reasoning").begin_object().key("effort");
  write_or_null(out, f.effort);
  write_or_null(out.key("summary"), f.summary);
  if (f.thought_tokens_max) out.key("max_tokens").value(*f.thought_tokens_max);
  out.end_object();
  out.key("store").value(f.store);
  out.key("truncation").value(f.auto_truncation ? "auto" : "disabled");
  out.key("text").begin_object().key("format");
  f.text_format.empty() ? out.begin_object().key("type").value("text").end_object() : out.json(f.text_format);
  out.end_object();
  out.key("temperature").value(f.temperature).key("top_p").value(f.top_p);
  write_or_null(out.key("user"), f.user);
  out.key("parallel_tool_calls").value(f.parallel_tool_calls);
  out.key("tool_choice");
  f.tool_choice.empty() ? out.value("auto") : out.json(f.tool_choice);
  out.key("tools").json(f.tools.empty() ? "[]" : f.tools);
}

/// A member as JSON; empty if it is absent.
std::string json_of(const object_reader& body, std::string_view name) {
  std::string json;
  if (const auto value = body.value(name)) {
    json_writer to(json);
    copy_json(to, *value);
  }
  return json;
}

void write_response_usage(json_writer& out, const token_usage& u) {
  out.begin_object();
  out.key("input_tokens").value(u.prompt_tokens);
  out.key("input_tokens_details").begin_object().key("cached_tokens").value(u.cached_tokens).end_object();
  out.key("output_tokens").value(u.completion_tokens);
  out.key("output_tokens_details").begin_object().key("reasoning_tokens").value(u.reasoning_tokens).end_object();
  out.key("total_tokens").value(u.prompt_tokens + u.completion_tokens).end_object();
}

void write_steps(json_writer& out, const std::vector<std::uint32_t>& steps) {
  out.begin_array();
  for (const auto step : steps) out.value(step);
  out.end_array();
}

std::vector<std::uint32_t> read_steps(const object_reader& object, std::string_view name) {
  std::vector<std::uint32_t> steps;
  if (const auto list = object.array(name))
    for (const auto element : list->elements())
      if (const auto step = element.integer(); step && *step >= 0 && *step <= std::numeric_limits<std::uint32_t>::max())
        steps.push_back(static_cast<std::uint32_t>(*step));
  return steps;
}

/// "completed", "incomplete" or "in_progress", the only statuses of an item.
std::string_view item_status(response_status status) {
  switch (status) {
    case response_status::completed: return "completed";
    case response_status::queued:
    case response_status::in_progress: return "in_progress";
    case response_status::incomplete:
    case response_status::cancelled:
    case response_status::failed: break;
  }
  return "incomplete";
}

}  // namespace

std::string_view to_string(response_status status) {
  switch (status) {
    case response_status::queued: return "queued";
    case response_status::in_progress: return "in_progress";
    case response_status::completed: return "completed";
    case response_status::incomplete: return "incomplete";
    case response_status::cancelled: return "cancelled";
    case response_status::failed: return "failed";
  }
  return "";
}

response_outcome outcome_of(const answer_end& end) {
  const std::string_view word = end.reason == finish_reason::length ? "length" : "stop";
  const std::string stopped = end.administrative ? end.administrative->stop_reason : "";
  return outcome_of(word, stopped, is_parked(stopped));
}

response_outcome outcome_of(std::string_view finish_reason, std::string_view stop_reason, bool unfinished) {
  response_outcome o;
  if (stop_reason == "admin_stop" || stop_reason == "cancelled") {
    o.status = response_status::cancelled;
  } else if (!stop_reason.empty() || finish_reason == "length") {
    o.status = response_status::incomplete;
    o.reason = stop_reason.empty() ? std::string(cut_at_limit) : std::string(stop_reason);
  } else {
    o.status = response_status::completed;
  }
  o.parked = unfinished && o.status != response_status::cancelled;
  return o;
}

namespace {

void read_summary(const object_reader& reasoning, response_facts& out) {
  const auto summary = reasoning.text("summary").value_or("");
  if (summary == "auto" || summary == "concise" || summary == "detailed")
    out.summary = summary;
  else if (!summary.empty() && summary != "none")
    reasoning.refuse("summary", "must be one of: auto, concise, detailed, none");
}

}  // namespace

std::size_t held_bytes(const response_facts& facts) {
  std::size_t bytes = facts.id.size() + facts.model.size() + (facts.instructions ? facts.instructions->size() : 0) +
                      facts.previous_response_id.size() + facts.conversation.size() + facts.effort.size() +
                      facts.user.size() + facts.summary.size() + facts.text_format.size() + facts.constraint.size() +
                      facts.tools.size() + facts.tool_choice.size();
  for (const auto& [name, value] : facts.metadata) bytes += name.size() + value.size();
  for (const auto& call : facts.calls) bytes += sizeof call + call.id.size() + call.name.size() + call.arguments.size();
  for (const auto& id : facts.answered_calls) bytes += sizeof id + id.size();
  return bytes;
}

void read_facts(const object_reader& body, response_facts& out) {
  if (const auto text = body.text("instructions")) out.instructions = *text;
  out.metadata = read_metadata(body).value_or(metadata_fields());
  out.max_output_tokens = body.integer("max_output_tokens", 0, std::numeric_limits<std::int64_t>::max());
  out.previous_response_id = body.text("previous_response_id").value_or("");
  if (const auto reasoning = body.object("reasoning")) {
    out.effort = reasoning->text("effort").value_or("");
    read_summary(*reasoning, out);
    if (const auto most = reasoning->integer("max_tokens", -1, 0xffffffff); most && *most > 0)
      out.thought_tokens_max = static_cast<std::uint32_t>(*most);
  }
  out.user = body.text("user").value_or("");
  const auto truncation = body.text("truncation").value_or("disabled");
  out.auto_truncation = truncation == "auto";
  if (!out.auto_truncation && truncation != "disabled") body.refuse("truncation", "must be auto or disabled");
  if (const auto text = body.object("text"))
    if (const auto format = text->object("format"); format && format->text("type").value_or("text") != "text") {
      json_writer to(out.text_format);
      copy_json(to, *text->value("format"));
    }
  if (const auto tools = body.value("tools"); tools && !tools->is_empty_array()) out.tools = json_of(body, "tools");
  out.tool_choice = json_of(body, "tool_choice");
  out.parallel_tool_calls = body.boolean("parallel_tool_calls").value_or(true);
  out.store = body.boolean("store").value_or(true);
  out.background = body.boolean("background").value_or(false);
}

void write_text_part(json_writer& out, std::string_view text) {
  out.begin_object().key("type").value("output_text").key("text").value(text);
  out.key("annotations").begin_array().end_array().key("logprobs").begin_array().end_array().end_object();
}

void write_reasoning_part(json_writer& out, std::string_view text, bool as_summary) {
  out.begin_object().key("type").value(as_summary ? "summary_text" : "reasoning_text");
  out.key("text").value(text).end_object();
}

void write_reasoning_item(json_writer& out, std::string_view response, std::string_view text, response_status status,
                          bool as_summary) {
  out.begin_object().key("id").value(item_id("rs_", response)).key("type").value("reasoning");
  out.key("status").value(item_status(status)).key("summary").begin_array();
  if (!text.empty() && as_summary) write_reasoning_part(out, text, true);
  out.end_array().key("content").begin_array();
  if (!text.empty() && !as_summary) write_reasoning_part(out, text, false);
  out.end_array().end_object();
}

void write_message_item(json_writer& out, std::string_view response, std::string_view text, response_status status) {
  out.begin_object().key("id").value(item_id("msg_", response)).key("type").value("message");
  out.key("status").value(item_status(status)).key("role").value("assistant").key("content").begin_array();
  if (!text.empty() || status != response_status::in_progress) write_text_part(out, text);
  out.end_array().end_object();
}

std::string call_item_id(std::string_view response, std::size_t number) {
  return item_id("fc_", response) + '_' + std::to_string(number);
}

void write_call_item(json_writer& out, std::string_view response, std::size_t number, const tool_call& call,
                     response_status status) {
  write_call_item(out, call_item_id(response, number), call, status);
}

void write_call_item(json_writer& out, std::string_view id, const tool_call& call, response_status status) {
  out.begin_object().key("id").value(id).key("type").value("function_call");
  out.key("status").value(item_status(status)).key("call_id").value(call.id);
  const auto [space, name] = parts_of(call.name);
  if (!space.empty()) out.key("namespace").value(space);
  out.key("name").value(name);
  out.key("arguments").value(call.arguments).end_object();
}

void write_call_output_item(json_writer& out, std::string_view id, std::string_view call, std::string_view output) {
  out.begin_object().key("id").value(id).key("type").value("function_call_output").key("status").value("completed");
  out.key("call_id").value(call).key("output").value(output).end_object();
}

void write_response(json_writer& out, const response_facts& f, const response_text& text,
                    const response_outcome& outcome, const token_usage* usage, const session_note* session) {
  out.begin_object().key("id").value(f.id).key("object").value("response").key("created_at").value(f.created);
  out.key("status").value(to_string(outcome.status));
  out.key("error");
  if (outcome.status == response_status::failed)
    out.begin_object().key("code").value("server_error").key("message").value(outcome.failure).end_object();
  else
    out.null();
  out.key("incomplete_details");
  if (outcome.status == response_status::incomplete)
    out.begin_object().key("reason").value(outcome.reason).end_object();
  else
    out.null();
  out.key("model").value(f.model);
  write_facts(out, f);
  out.key("conversation");
  if (f.conversation.empty())
    out.null();
  else
    out.begin_object().key("id").value(f.conversation).end_object();
  out.key("output").begin_array();
  const bool over = outcome.status > response_status::in_progress;
  const bool speaks = (over && text.calls.empty()) || !text.content.empty();
  if (!text.reasoning.empty())
    write_reasoning_item(out, f.id, text.reasoning,
                         speaks || !text.calls.empty() ? response_status::completed : outcome.status,
                         !f.summary.empty());
  if (speaks) write_message_item(out, f.id, text.content, outcome.status);
  for (std::size_t i = 0; i < text.calls.size(); ++i)
    write_call_item(out, f.id, i, text.calls[i],
                    text.calls[i].whole ? response_status::completed
                    : over              ? response_status::incomplete
                                        : response_status::in_progress);
  out.end_array();
  out.key("usage");
  usage ? write_response_usage(out, *usage) : void(out.null());
  write_session(out, session);
  out.end_object();
}

std::string conversation_object(std::string_view id, std::int64_t created, const metadata_fields& metadata) {
  std::string json;
  json_writer out(json);
  out.begin_object().key("id").value(id).key("object").value("conversation").key("created_at").value(created);
  write_metadata(out.key("metadata"), metadata);
  out.end_object();
  return json;
}

void write_remembered(json_writer& out, const remembered_response& what) {
  out.begin_object().key("model").value(what.facts.model).key("created_at").value(what.facts.created);
  out.key("tokens_max").value(what.facts.tokens_max);
  write_or_null(out.key("conversation"), what.facts.conversation);
  write_facts(out, what.facts);
  if (!what.facts.constraint.empty()) out.key("constraint").json(what.facts.constraint);
  out.key("usage").begin_object().key("input").value(what.usage.prompt_tokens);
  out.key("cached").value(what.usage.cached_tokens).key("output").value(what.usage.completion_tokens);
  out.key("reasoning").value(what.usage.reasoning_tokens).end_object();
  write_steps(out.key("reasoning_steps"), what.reasoning_steps);
  write_steps(out.key("content_steps"), what.content_steps);
  if (!what.facts.calls.empty()) {
    out.key("calls").begin_array();
    for (const auto& call : what.facts.calls)
      out.begin_object().key("call_id").value(call.id).key("name").value(call.name).end_object();
    out.end_array();
  }
  if (!what.facts.answered_calls.empty()) {
    out.key("answered_calls").begin_array();
    for (const auto& id : what.facts.answered_calls) out.value(id);
    out.end_array();
  }
  if (!what.call_steps.empty()) write_steps(out.key("call_steps"), what.call_steps);
  out.end_object();
}

remembered_response read_remembered(const object_reader& object) {
  constexpr auto max = std::numeric_limits<std::int64_t>::max();
  remembered_response what;
  response_facts& f = what.facts;
  read_facts(object, f);
  f.model = object.text("model").value_or("");
  f.created = object.integer("created_at", 0, max).value_or(0);
  f.conversation = object.text("conversation").value_or("");
  f.constraint = json_of(object, "constraint");
  f.tokens_max = static_cast<std::uint32_t>(object.integer("tokens_max", 0, 0xffffffff).value_or(0));
  f.temperature = static_cast<float>(object.number("temperature", 0, 1e9).value_or(1));
  f.top_p = static_cast<float>(object.number("top_p", 0, 1).value_or(1));
  if (const auto usage = object.object("usage")) {
    const auto count = [&](std::string_view name) {
      return static_cast<std::uint64_t>(usage->integer(name, 0, max).value_or(0));
    };
    what.usage = {count("input"), count("output"), count("cached"), count("reasoning")};
  }
  what.reasoning_steps = read_steps(object, "reasoning_steps");
  what.content_steps = read_steps(object, "content_steps");
  what.call_steps = read_steps(object, "call_steps");
  if (const auto calls = object.array("calls"))
    for (const auto call : calls->elements()) {
      const auto text = [&](std::string_view name) {
        const auto value = call.is(json_kind::object) ? call.member(name) : std::nullopt;
        return std::string(value ? value->text().value_or("") : "");
      };
      f.calls.push_back({text("call_id"), text("name"), ""});
    }
  if (const auto ids = object.array("answered_calls"))
    for (const auto id : ids->elements()) f.answered_calls.emplace_back(id.text().value_or(""));
  return what;
}

}  // namespace skein::protocol
