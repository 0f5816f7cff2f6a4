#include "protocol/responses_api/responses_request.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>

#include "config/limits.hpp"
#include "protocol/chat/call_splitter.hpp"
#include "protocol/chat/chat_messages.hpp"
#include "protocol/chat/chat_template.hpp"
#include "protocol/chat/thinking_fields.hpp"
#include "protocol/chat/tool_fields.hpp"
#include "protocol/chat/tool_list.hpp"
#include "protocol/dialects/dialect_readers.hpp"
#include "protocol/requests/shared_fields.hpp"
#include "protocol/responses_api/logged_constraint.hpp"
#include "protocol/responses_api/response_id.hpp"
#include "protocol/responses_api/response_writer.hpp"

namespace skein::protocol {
namespace {

/// A call belongs to the assistant's turn before it.
void read_call_item(const object_reader& item, turn_form form, std::vector<chat_message>& out) {
  const tool_call call{"", name_in(item), read_arguments(item, "arguments")};
  if (item.text("name").value_or("").empty()) item.refuse("name", "must be a string");
  if (out.empty() || out.back().role != "assistant") out.push_back({"assistant", "", ""});
  out.back().content = text_with_calls(out.back().content, {&call, 1}, form);
  out.back().calls = true;
}

void read_output_item(const object_reader& item, std::vector<chat_message>& out) {
  const auto output = item.value("output");
  chat_message result{"tool", "", ""};
  result.answers_call = true;
  if (output && output->text()) {
    result.content = *output->text();
  } else if (output && output->is(json_kind::array)) {
    for (const auto part : output->elements()) {
      const auto text = part.is(json_kind::object) ? part.member("text") : std::nullopt;
      if (!text || !text->text()) return item.refuse("output", "must be a string or a list of text parts");
      result.content += *text->text();
    }
  } else {
    item.refuse("output", "must be a string or a list of text parts");
  }
  out.push_back(std::move(result));
}

/// An item of `input`: a message, or another item of an earlier answer that the client sends back.
void read_item(const object_reader& item, turn_form form, std::vector<chat_message>& out) {
  const auto type = item.text("type").value_or("message");
  if (type == "reasoning") return;  // the state already includes it
  if (type == "function_call") return read_call_item(item, form, out);
  if (type == "function_call_output") return read_output_item(item, out);
  if (type != "message") return item.refuse_unsupported("type");
  out.push_back(read_message(item));
}

void read_items(json_value list, const object_reader& body, turn_form form, std::vector<chat_message>& out) {
  std::size_t index = 0;
  for (const auto element : list.elements()) {
    if (body.fault().found()) return;
    const auto path = element_path("input", index++);
    if (element.is(json_kind::object))
      read_item({element, path, body.fault()}, form, out);
    else
      body.fault().report(error_kind::invalid_argument, path, path + " must be an object");
  }
}

/// The values that OpenAI documents. They add data of tools and inputs that do not occur here, so they have no effect.
constexpr std::array<std::string_view, 7> includes{
    "web_search_call.action.sources", "web_search_call.results",
    "code_interpreter_call.outputs",  "computer_call_output.output.image_url",
    "file_search_call.results",       "message.input_image.image_url",
    "reasoning.encrypted_content"};
constexpr std::string_view log_probabilities = "message.output_text.logprobs";

void read_includes(const object_reader& body) {
  const auto list = body.array("include");
  if (!list) return;
  for (const auto what : list->elements()) {
    const auto name = what.text();
    if (name == log_probabilities) return body.refuse_unsupported("include");
    if (!name || std::ranges::find(includes, *name) == includes.end())
      return body.refuse("include",
                         "must be a list of names that OpenAI documents, such as reasoning.encrypted_content");
  }
}

/// Rejects unsupported fields that would change the answer. Fields that only name a cache, a tier or an end user are
/// ignored.
void refuse_what_is_not_done(const object_reader& body) {
  refuse_functions(body);
  if (body.integer("top_logprobs", 0, 20).value_or(0) > 0) body.refuse_unsupported("top_logprobs");
  read_includes(body);
  for (const auto name : {"prompt", "context_management", "moderation", "session_id", "continue"})
    if (body.value(name)) body.refuse_unsupported(name);
  if (body.integer("n", 1, 1'000'000).value_or(1) != 1) body.refuse_unsupported("n");
}

/// Reads the turn to continue or the conversation to append to (at its head or after any version); a new conversation
/// if neither is given.
void read_place(const object_reader& body, const response_facts& facts, generation_request& out) {
  session_fields session;
  session.appends = session.responds = session.store_on_disconnect = true;
  session.must_exist = !facts.previous_response_id.empty();
  session.expected_version = read_version(body, "expected_version");
  if (facts.conversation.empty() && body.value("from_version"))
    return body.refuse("from_version", "requires conversation");
  if (!facts.previous_response_id.empty()) {
    const auto conversation = conversation_of(facts.previous_response_id);
    if (!conversation) return body.refuse("previous_response_id", "is not the id of a response");
    if (!facts.conversation.empty()) return body.refuse("conversation", "cannot be combined with previous_response_id");
    session.id = *conversation;
    session.from_key = facts.previous_response_id;
  } else if (!facts.conversation.empty()) {
    if (!is_conversation_id(facts.conversation)) return body.refuse("conversation", "is not the id of a conversation");
    session.id = facts.conversation;
    session.from_version = read_version(body, "from_version");
  } else if (!facts.store) {
    if (session.expected_version) body.refuse("expected_version", "requires conversation");
    return;
  }
  out.session = std::move(session);
}

std::string conversation_in(const object_reader& body) {
  const auto given = body.value("conversation");
  if (!given) return {};
  if (const auto id = given->text()) return std::string(*id);
  if (given->is(json_kind::object))
    if (const auto id = given->member("id"); id && id->text()) return std::string(*id->text());
  body.refuse("conversation", "must be an id or an object with one");
  return {};
}

/// Reads the calls and results of a valid input.
void read_call_ids(const object_reader& body, response_facts& out) {
  const auto input = body.value("input");
  if (body.fault().found() || !input || !input->is(json_kind::array)) return;
  for (const auto element : input->elements()) {
    const auto text = [&](std::string_view name) {
      const auto value = element.member(name);
      return std::string(value ? value->text().value_or("") : "");
    };
    const auto type = text("type");
    if (type == "function_call")
      out.calls.push_back({text("call_id"), qualified_name(text("namespace"), text("name")), ""});
    if (type == "function_call_output") out.answered_calls.push_back(text("call_id"));
  }
}

/// The names of tools that were given as JSON.
tool_names names_of(std::string_view tools) {
  const auto list = json_document::parse(tools, known_json);
  if (!list) return nullptr;
  auto names = names_in(list->root());
  std::ranges::sort(names);
  return std::make_shared<const std::vector<std::string>>(std::move(names));
}

response_text text_of(const logged_response& logged, remembered_response& was) {
  response_text text{logged.reasoning, "", std::move(was.reasoning_steps), std::move(was.content_steps),
                     std::move(was.call_steps)};
  text.calls = split_calls(logged.answer, was.facts.tools.empty() ? nullptr : names_of(was.facts.tools), text.content);
  for (std::uint32_t i = 0; i < text.calls.size(); ++i) text.calls[i].id = call_id(logged.id, 0, i);
  return text;
}

/// Reads the settings of a turn: `read(settings, response)`.
template <typename Read>
auto with_settings(const logged_response& logged, Read read)
    -> result<std::invoke_result_t<Read, const object_reader&, const object_reader&>> {
  error none{error_kind::not_found, "there is no response '" + logged.id + "'", ""};
  const auto document = json_document::parse(logged.settings, known_json);
  if (!document || !document->root().is(json_kind::object)) return none;
  first_fault fault;
  const object_reader settings(document->root(), "", fault);
  const auto response = settings.object("response");
  if (!response) return none;
  auto made = read(settings, *response);
  if (fault.found()) return error{error_kind::damaged, "the response '" + logged.id + "' is damaged", ""};
  return made;
}

std::optional<std::uint64_t> number_in(std::string_view settings, std::string_view name) {
  const auto document = json_document::parse(settings, known_json);
  if (!document || !document->root().is(json_kind::object)) return std::nullopt;
  const auto number = document->root().member(name);
  return number ? number->unsigned_integer() : std::nullopt;
}

known_response known(const logged_response& logged, const object_reader& response) {
  auto was = read_remembered(response);
  auto text = text_of(logged, was);
  known_response k{std::move(was.facts), was.usage, std::move(text),
                   outcome_of(logged.finish_reason, logged.stop_reason, logged.unfinished)};
  k.facts.id = logged.id;
  return k;
}

/// Calls `take` for the first `most` elements of a list; one that it does not accept is reported.
template <typename Take>
void for_each_in(const object_reader& settings, std::string_view name, std::size_t most, Take take) {
  const auto list = settings.array(name);
  if (!list) return;
  std::size_t count = 0;
  for (const json_value element : list->elements()) {
    if (count++ == most) return;
    if (!take(element)) return settings.refuse(name, "has an element of another kind");
  }
}

std::optional<token_id> token_in(json_value value) {
  const auto id = value.integer();
  if (!id || *id < 0 || *id > std::numeric_limits<token_id>::max()) return std::nullopt;
  return static_cast<token_id>(*id);
}

/// A list of a token and its bias.
std::optional<sampling::logit_bias_entry> bias_in(json_value pair) {
  if (!pair.is(json_kind::array)) return std::nullopt;
  std::vector<json_value> parts;
  for (const json_value part : pair.elements()) parts.push_back(part);
  if (parts.size() != 2) return std::nullopt;
  const auto token = token_in(parts[0]);
  const auto bias = parts[1].number();
  if (!token || !bias) return std::nullopt;
  constexpr double bias_max = 100;  // of a request
  return sampling::logit_bias_entry{*token, static_cast<float>(std::clamp(*bias, -bias_max, bias_max))};
}

/// The stop rules, biases and switches of the stored request, and its stop strings or the preset's stop strings if it
/// has none. Imported sessions may have more of them than a request may, and values of other kinds: the surplus is
/// dropped, other kinds are reported.
void read_rules(const object_reader& settings, const model_preset& preset, const request_limits& limits,
                generation_request& out) {
  out.stop = preset.stop;
  out.ignore_eos = settings.boolean("ignore_eos").value_or(false);
  out.shows_stop = settings.boolean("include_stop_str_in_output").value_or(false);
  out.penalises_prompt = settings.boolean("global_penalty").value_or(false);
  out.force_reasoning = settings.boolean("force_reasoning").value_or(false);
  if (settings.value("stop")) out.stop.clear();
  for_each_in(settings, "stop", limits.stops_max + config::limits::list_entries_max, [&](json_value stop) {
    const auto text = stop.text();
    if (text) out.stop.emplace_back(*text);
    return text.has_value();
  });
  for_each_in(settings, "stop_ids", limits.stop_ids_max, [&](json_value id) {
    const auto token = token_in(id);
    if (token) out.sampling.stop_ids.push_back(*token);
    return token.has_value();
  });
  for_each_in(settings, "logit_bias", limits.logit_bias_max, [&](json_value pair) {
    const auto bias = bias_in(pair);
    if (bias) out.sampling.logit_bias.push_back(*bias);
    return bias.has_value();
  });
}

/// For an answer that is continued: the response has the limit that it began with.
model_preset without_limit(model_preset preset) {
  preset.default_think_tokens_max = 0;
  return preset;
}

constexpr double penalty_max = 1000;  // more than a request or a preset can set

/// Numbers beyond those of a request are clamped to its ranges.
sampling::sampling_params sampling_of(const object_reader& settings, std::uint64_t most, std::uint64_t sampled,
                                      std::uint64_t counted) {
  const auto number = [&](std::string_view name, double standard, double min, double max) {
    return static_cast<float>(std::clamp(settings.number(name, -1e9, 1e9).value_or(standard), min, max));
  };
  sampling::sampling_params p;
  p.temperature = number("temperature", 1, 0, 1000);
  p.top_p = number("top_p", 1, 0, 1);
  p.top_k =
      static_cast<std::int32_t>(settings.integer("top_k", -1, std::numeric_limits<std::int32_t>::max()).value_or(0));
  p.min_p = number("min_p", 0, 0, 1);
  p.first_penalty = number("first_penalty", 0, -penalty_max, penalty_max);
  p.repeat_penalty = number("repeat_penalty", 0, -penalty_max, penalty_max);
  p.penalty_decay = number("penalty_decay", 1, 0, 1);
  p.max_tokens = static_cast<std::uint32_t>(most - std::min(most, counted));
  if (const auto seed = settings.value("seed")) p.seed = seed->unsigned_integer().value_or(0);
  p.sampled_before = static_cast<std::uint32_t>(std::min<std::uint64_t>(sampled, 0xffffffff));
  return p;
}

}  // namespace

void read_input(const object_reader& body, const reading& by, generation_request& out) {
  if (const auto text = body.text("instructions"); text && !text->empty())
    out.messages.push_back({"system", std::string(*text), ""});
  const std::size_t before = out.messages.size();
  const auto input = body.value("input");
  if (input && input->is(json_kind::array))
    read_items(*input, body, tool_form(by.preset), out.messages);
  else if (input && input->text())
    out.messages.push_back({"user", std::string(*input->text()), ""});
  else
    body.refuse("input", "must be a string or a list of items");
  if (out.messages.size() == before) body.refuse("input", "must have at least one message");
  out.style.no_think_opening = by.preset.no_think_opening;
  choose_template(by.preset, out.style);
  read_text_format(body, out);
  read_tools(body, {tool_form(by.preset), true, by.limits.tools_max}, out);
}

void read_response_options(const object_reader& body, const reading& by, generation_request& out) {
  refuse_what_is_not_done(body);
  response_facts facts;
  read_facts(body, facts);
  facts.constraint = constraint_to_log(body);
  facts.conversation = conversation_in(body);
  read_call_ids(body, facts);
  const bool limited = out.thoughts && out.think != think_mode::off;
  facts.thought_tokens_max = limited ? std::optional(out.thoughts->tokens_max) : std::nullopt;
  if (facts.max_output_tokens)
    out.sampling.max_tokens =
        static_cast<std::uint32_t>(std::min<std::int64_t>(*facts.max_output_tokens, by.limits.max_tokens_max));
  if (facts.background && !facts.store) body.refuse("background", "requires store to be true");
  out.background = facts.background;
  out.answers_at_once = facts.background && !out.stream;
  out.stream = out.stream || facts.background;
  facts.temperature = out.sampling.temperature;
  facts.top_p = out.sampling.top_p;
  facts.tokens_max = out.sampling.max_tokens;
  read_place(body, facts, out);
  out.writer = std::make_shared<response_writer>(std::move(facts));
}

void read_streamed_response(const object_reader& body, const reading& by, generation_request& out) {
  out.stream = true;
  read_response_options(body, by, out);
}

result<socket_message> read_socket_message(std::string_view text, const request_limits& limits) {
  return read_body(text, limits, [](const object_reader& body) {
    socket_message message;
    const auto type = body.text("type").value_or("");
    message.creates = type == "response.create";
    if (type == "response.cancel")
      message.cancels = body.text("response_id").value_or("");
    else if (!message.creates)
      body.refuse("type", "must be response.create or response.cancel");
    return message;
  });
}

result<std::optional<metadata_fields>> parse_conversation(std::string_view text, const request_limits& limits) {
  if (text.empty()) return std::optional<metadata_fields>();
  return read_body(text, limits, [](const object_reader& body) {
    if (const auto items = body.value("items"); items && !items->is_empty_array()) body.refuse_unsupported("items");
    return read_metadata(body);
  });
}

result<continuation> parse_continuation(std::string_view text, const request_limits& limits) {
  continuation how;
  how.beyond_limit = true;
  if (text.empty()) return how;
  return read_body(text, limits, [&](const object_reader& body) {
    if (const auto more = body.integer("max_output_tokens", 1, limits.max_tokens_max))
      how.more_tokens = static_cast<std::uint32_t>(*more);
    if (const auto after = body.integer("starting_after", 0, std::numeric_limits<std::int64_t>::max()))
      how.after = static_cast<std::uint64_t>(*after);
    return how;
  });
}

std::uint64_t hidden_tokens(std::string_view settings) { return number_in(settings, hidden_tokens_key).value_or(0); }

std::optional<std::uint64_t> request_digest_in(std::string_view settings) {
  return number_in(settings, request_digest_key);
}

void write_reported_usage(json_writer& out, const token_usage& usage) {
  out.key(reported_usage_key).begin_object();
  out.key("prompt").value(usage.prompt_tokens).key("cached").value(usage.cached_tokens);
  out.key("completion").value(usage.completion_tokens).key("reasoning").value(usage.reasoning_tokens);
  out.end_object();
}

std::optional<token_usage> reported_usage_in(std::string_view settings) {
  const auto document = json_document::parse(settings, known_json);
  if (!document || !document->root().is(json_kind::object)) return std::nullopt;
  const auto kept = document->root().member(reported_usage_key);
  if (!kept || !kept->is(json_kind::object)) return std::nullopt;
  const auto number = [&](std::string_view name) {
    const auto value = kept->member(name);
    return value ? value->unsigned_integer().value_or(0) : 0;
  };
  return token_usage{number("prompt"), number("completion"), number("cached"), number("reasoning")};
}

std::size_t reading_bytes(const logged_response& logged) {
  return reading_bytes(logged.settings, logged.reasoning, logged.answer);
}

std::size_t reading_bytes(std::string_view settings, std::string_view reasoning, std::string_view answer) {
  // json_document: the padded text, its strings, and a few numbers for each value.
  constexpr std::size_t copies = 3, value_bytes = 24;
  const auto ends_value = [](char c) { return c == ',' || c == ':' || c == '[' || c == '{'; };
  const auto values = static_cast<std::size_t>(std::ranges::count_if(settings, ends_value));
  return copies * settings.size() + value_bytes * values + 2 * (reasoning.size() + answer.size());
}

result<known_response> read_logged(const logged_response& logged) {
  return with_settings(logged,
                       [&](const object_reader&, const object_reader& response) { return known(logged, response); });
}

result<generation_request> go_on_with(const logged_response& logged, const model_preset& preset,
                                      const request_limits& limits, const continuation& how) {
  return with_settings(logged, [&](const object_reader& settings, const object_reader& response) {
    known_response k = known(logged, response);
    const std::uint64_t hidden = std::min(hidden_tokens(logged.settings), logged.tokens_sampled);
    const std::uint64_t counted = logged.tokens_sampled - hidden;
    const bool beyond_limit = how.beyond_limit && !logged.unfinished;
    if (beyond_limit) {
      const std::uint64_t more = how.more_tokens.value_or(k.facts.tokens_max);
      k.facts.tokens_max = static_cast<std::uint32_t>(std::min<std::uint64_t>(counted + more, 0xffffffff));
      if (k.facts.max_output_tokens) k.facts.max_output_tokens = k.facts.tokens_max;
    }
    generation_request r;
    read_thinking(response, without_limit(preset), r);
    r.prompt_field = "input";
    r.style.no_think_opening = preset.no_think_opening;
    choose_template(preset, r.style);
    r.sampling = sampling_of(settings, k.facts.tokens_max, logged.tokens_sampled, counted);
    r.sampling.max_tokens = std::min(r.sampling.max_tokens, limits.max_tokens_max);
    r.seed_given = r.temperature_named = r.top_p_named = true;
    read_rules(settings, preset, limits, r);
    read_logged_constraint(response, r);
    read_text_format(response, r);
    read_tools(response, {tool_form(preset), true, config::limits::tools_max}, r);
    r.messages.clear();  // the conversation has them
    r.stream = true;
    r.model = k.facts.model;
    session_fields session;
    session.id = conversation_of(logged.id).value_or("");
    session.request_key = session.from_key = logged.id;
    session.beyond_limit = beyond_limit;
    session.go_on = session.responds = session.store_on_disconnect = true;
    r.session = std::move(session);
    if (!logged.without_ending) skip_ending(k.text, !beyond_limit);
    k.facts.sampled_before = logged.tokens_sampled;
    k.facts.hidden_before = hidden;
    // A token that ended within a character was counted, but is sampled again.
    k.facts.reasoned_before = std::min(k.usage.reasoning_tokens, counted);
    r.writer = std::make_shared<response_writer>(std::move(k.facts), std::move(k.text), how.after);
    return r;
  });
}

std::string response_events(const known_response& response, std::optional<std::uint64_t> after,
                            const session_note* session) {
  const response_writer writer(response.facts, response.text, after);
  answer_head head;
  head.id = response.facts.id;
  head.model = response.facts.model;
  head.created = response.facts.created;
  std::string events = writer.begin_event(head, 0);
  return events += writer.concluding_events(response.outcome, response.usage, session);
}

}  // namespace skein::protocol
