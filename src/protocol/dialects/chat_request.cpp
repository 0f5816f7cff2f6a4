#include <algorithm>

#include "protocol/chat/chat_messages.hpp"
#include "protocol/chat/chat_template.hpp"
#include "protocol/chat/tool_fields.hpp"
#include "protocol/chat/tool_tags.hpp"
#include "protocol/dialects/dialect_readers.hpp"
#include "protocol/requests/shared_fields.hpp"

namespace skein::protocol {
namespace {

bool read_reasoning_raw(const object_reader& body) {
  const auto format = body.text("reasoning_format");
  if (!format || format->empty()) return false;
  if (*format == "raw" || *format == "none") return true;
  if (*format != "auto" && *format != "parsed" && *format != "deepseek")
    body.refuse("reasoning_format", "must be one of: raw, none, auto, parsed, deepseek");
  return false;
}

void read_chat_logprobs(const object_reader& body, sampling::sampling_params& out) {
  out.logprobs = body.boolean("logprobs").value_or(false);
  const auto top = body.integer("top_logprobs", 0, sampling::top_logprobs_max);
  if (top && *top > 0 && !out.logprobs) body.refuse("top_logprobs", "needs logprobs to be true");
  out.top_logprobs = static_cast<std::uint32_t>(top.value_or(0));
}

/// An experimental feature of rwkv_lightning: whole answers are searched for tool calls.
void read_tool_tags(const object_reader& body, generation_request& out) {
  const bool wanted = body.boolean("enable_tool_calls").value_or(false);
  const auto parser = body.text("tool_call_parser").value_or("auto");
  if (parser != "auto" && parser != "tag" && parser != "prefix")
    body.refuse("tool_call_parser", "must be one of: auto, tag, prefix");
  if (wanted && !out.stream && !out.tool_names) out.writer = tool_tag_writer(parser != "prefix", parser != "tag");
}

}  // namespace

void read_conversation(const object_reader& body, const reading& by, generation_request& out) {
  const auto form = tool_form(by.preset);
  if (!goes_on(body, "messages")) out.messages = read_messages(body, by.as.lenient, form);
  out.style.no_think_opening = by.preset.no_think_opening;
  choose_template(by.preset, out.style);
  read_tools(body, {form, false, by.limits.tools_max}, out);
}

void read_spoken_conversation(const object_reader& body, const reading& by, generation_request& out) {
  const auto is_blank = [&](std::string_view name) {
    const auto list = body.value(name);
    return !list || list->is_empty_array();
  };
  const bool nothing_new = body.boolean("continue").value_or(false);
  bool silent = !nothing_new && is_blank("messages") && is_blank("contents");
  if (!silent) read_conversation(body, by, out);
  silent = silent || std::ranges::all_of(out.messages, [](const chat_message& m) { return m.content.empty(); });
  if (silent && !nothing_new) body.fault().report(error_kind::invalid_argument, "messages", "Empty prompt");
}

void read_chat_options(const object_reader& body, const reading&, generation_request& out) {
  refuse_unsupported_fields(body);
  refuse_functions(body);
  read_chat_logprobs(body, out.sampling);
  if (!body.text("think_type").value_or("").empty()) out.force_reasoning = out.think != think_mode::off;
  out.reasoning_raw = read_reasoning_raw(body);
  read_tool_tags(body, out);
  out.style.opens_answer = body.boolean("add_generation_prompt").value_or(true);
  if (!out.style.opens_answer && body.value("session_id"))
    body.refuse("add_generation_prompt", "must not be false in a session");
}

}  // namespace skein::protocol
