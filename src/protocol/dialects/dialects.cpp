#include "protocol/requests/dialect.hpp"

#include <string>
#include <utility>

#include "base/text.hpp"
#include "protocol/chat/think_splitter.hpp"
#include "protocol/chat/thinking_fields.hpp"
#include "protocol/dialects/dialect_readers.hpp"
#include "protocol/json/json_writer.hpp"
#include "protocol/requests/shared_fields.hpp"
#include "protocol/responses/native_writer.hpp"

namespace skein::protocol {
namespace {

sampling_rules changed(sampling_rules rules, const client_defaults& by) {
  rules.temperature = by.temperature.value_or(rules.temperature);
  rules.top_p = by.top_p.value_or(rules.top_p);
  rules.top_k = by.top_k.value_or(rules.top_k);
  rules.alpha_presence = by.presence.value_or(rules.alpha_presence);
  rules.alpha_frequency = by.frequency.value_or(rules.alpha_frequency);
  rules.alpha_decay = by.decay.value_or(rules.alpha_decay);
  rules.max_tokens = by.max_tokens.value_or(rules.max_tokens);
  rules.penalises_prompt = by.penalises_prompt.value_or(false);
  if (by.end_text) rules.turn_ends = by.end_text->empty() ? std::vector<std::string>() : std::vector{*by.end_text};
  return rules;
}

sampling_rules chat_rules(const model_preset& p, const config::sampler_defaults& sampler) {
  sampling_rules rules;
  rules.temperature = static_cast<float>(sampler.temperature);
  rules.top_p = static_cast<float>(sampler.top_p);
  rules.top_k = sampler.top_k;
  rules.alpha_presence = static_cast<float>(sampler.alpha_presence);
  rules.alpha_frequency = static_cast<float>(sampler.alpha_frequency);
  rules.alpha_decay = static_cast<float>(sampler.alpha_decay);
  rules.max_tokens = p.max_tokens;
  rules.turn_ends = p.stop;
  rules.keeps_unset = p.unset_sampling != "neutral";
  return changed(std::move(rules), p.by_client);
}

sampling_rules text_rules(const model_preset& p,
                          const config::sampler_defaults&) {  // raw text has no turns, so no turn ends
  return {.alpha_decay = static_cast<float>(p.alpha_decay), .max_tokens = p.completion_max_tokens};
}

sampling_rules native_rules(const model_preset&, const config::sampler_defaults&) {
  return {1.0f, 0.6f, 50, 2.0f, 0.2f, 0.996f, 8192, {"\nUser:"}, true};
}

sampling_rules big_batch_rules(const model_preset&, const config::sampler_defaults&) {
  sampling_rules rules{.max_tokens = 512, .turn_ends = {"\nUser:"}, .stands_alone = true};
  rules.temperature_only = rules.noise = true;
  return rules;
}

sampling_rules infer_rules(const model_preset& p, const config::sampler_defaults&) {
  sampling_rules rules{1.0f, 0.3f, 0, 0.5f, 0.5f, 0.996f, 1024, {"\n\nUser:"}, true};
  rules.classic = true;
  return changed(std::move(rules), p.by_client);
}

sampling_rules infer_text_rules(const model_preset& p, const config::sampler_defaults& sampler) {
  auto rules = infer_rules(p, sampler);
  rules.turn_ends.clear();
  return rules;
}

sampling_rules ai_rules(const model_preset&, const config::sampler_defaults&) {
  sampling_rules rules{1.0f, 0.5f, 128, 0.3f, 0.3f, 0.99654026f, 256, {"\n\n"}, true};
  rules.classic = true;
  rules.stop_replaces = true;
  rules.bias_field = "bias";
  return rules;
}

/// Rejects samplers, templates and states of ai00 that are not implemented, because the text would differ.
void refuse_foreign(const object_reader& body) {
  for (const auto name : {"template", "states", "embeds", "sampler_override"})
    if (const auto value = body.value(name); value && !value->is_empty_array() && value->text() != "")
      body.refuse_unsupported(name);
  if (const auto type = body.text("type"); type && *type != "Nucleus") body.refuse_unsupported("type");
}

sampling_rules infill_rules(const model_preset& p, const config::sampler_defaults&) {
  return {0.8f, 0.95f, 40, 0.0f, 0.0f, 1.0f, p.completion_max_tokens, {}, true};
}

sampling_rules greedy_rules(const model_preset&, const config::sampler_defaults&) {
  return {.top_k = 1, .max_tokens = 2048, .stands_alone = true};
}

const native_writer batch_answers("rwkv7-batch"), v3_answers("rwkv7-batch-v3"), branch_answers("rwkv7-multi-state"),
    single_answers("rwkv7-fast-batch", native_writer::events::of_one_row),
    fill_in_answers("rwkv7-batch", native_writer::events::shared, "FIM.completion");

/// An empty list counts as absent.
bool has(const object_reader& body, std::string_view name) {
  const auto found = body.value(name);
  return found && !found->is_empty_array();
}

const dialect* by_member(const object_reader& body) {
  if (has(body, "messages")) return &dialects::shared_chat;
  if (body.value("contents")) return &dialects::batch;
  if (body.value("prompt")) return &dialects::completions;
  return &dialects::shared_chat;
}

const dialect* text_first(const object_reader& body) {
  return !body.value("prompt") && has(body, "messages") ? &dialects::shared_chat : &dialects::completions;
}

}  // namespace

namespace dialects {
namespace {

constexpr auto flat = error_style::flat;

/// A copy of a row with some fields changed.
template <typename Change>
dialect like(dialect row, std::string_view name, Change change) {
  row.name = name;
  change(row);
  return row;
}

}  // namespace

const dialect chat{.name = "chat",
                   .prompt_field = "messages",
                   .read_prompts = read_conversation,
                   .rules = chat_rules,
                   .writer = &chat_writer(),
                   .read_more = read_chat_options,
                   .thinks = true};
const dialect completions{"completions", "prompt", read_prompt, text_rules, &completion_writer(), read_text_options};
const dialect responses = like(chat, "responses", [](dialect& d) {
  d.prompt_field = "input";
  d.read_prompts = read_input;
  d.read_more = read_response_options;
  d.sessions = false;  // read_response_options reads them
});
const dialect socket = like(responses, "socket", [](dialect& d) { d.read_more = read_streamed_response; });
const dialect spoken_chat = like(chat, "chat", [](dialect& d) { d.read_prompts = read_spoken_conversation; });
const dialect shared_chat = like(chat, "chat", [](dialect& d) { d.read_prompts = read_named_conversation; });
const dialect chat_or_batch = like(chat, "chat", [](dialect& d) { d.choose = by_member; });
const dialect text_or_chat = like(completions, "completions", [](dialect& d) { d.choose = text_first; });

const dialect state{.name = "state",
                    .prompt_field = "contents",
                    .read_prompts = read_one_turn,
                    .rules = native_rules,
                    .writer = &batch_answers,
                    .read_more = read_one_row,
                    .errors = flat,
                    .chunk_size = 4,
                    .lenient = true};
const dialect multi_state = like(state, "multi_state", [](dialect& d) {
  d.writer = &branch_answers;
  d.read_more = read_branch;
  d.sessions = false;  // read_branch reads them
});
const dialect batch = like(state, "batch", [](dialect& d) {
  d.read_prompts = read_contents;
  d.read_more = nullptr;
  d.sessions = false;
});
const dialect batch_v2 = like(batch, "batch_v2", [](dialect& d) { d.read_more = read_padding; });
const dialect batch_v3 = like(batch, "batch_v3", [](dialect& d) {
  d.read_prompts = read_questions;
  d.writer = &v3_answers;
});
const dialect big_batch = like(batch, "big_batch", [](dialect& d) {
  d.rules = big_batch_rules;
  d.chunk_size = 32;
  d.streams = true;
});
const dialect single_events = like(batch, "single_events", [](dialect& d) {
  d.writer = &single_answers;
  d.chunk_size = 8;
});
const dialect fill_in = like(batch, "fill_in", [](dialect& d) {
  d.prompt_field = "prefix";
  d.read_prompts = read_pairs;
  d.writer = &fill_in_answers;
});
const dialect infill = like(completions, "infill", [](dialect& d) {
  d.prompt_field = "input_prefix";
  d.read_prompts = read_infill;
  d.rules = infill_rules;
  d.read_more = read_infill_options;
  d.sessions = false;
});
const dialect translate = like(batch, "translate", [](dialect& d) {
  d.prompt_field = "text_list";
  d.read_prompts = read_texts_to_translate;
  d.rules = greedy_rules;
  d.read_more = read_whole_answer;
  d.may_be_open = true;
});

const dialect infer_chat = like(chat, "infer_chat", [](dialect& d) {
  d.read_prompts = read_named_conversation;
  d.rules = infer_rules;
  d.lenient = true;
  d.loose_values_in = "params";
});
const dialect infer_completions = like(completions, "infer_completions", [](dialect& d) {
  d.rules = infer_text_rules;
  d.lenient = true;
  d.loose_values_in = "params";
});

template <void (*Read)(const object_reader&, const reading&, generation_request&)>
void as_ai00(dialect& d) {
  d.read_prompts = [](const object_reader& body, const reading& by, generation_request& out) {
    refuse_foreign(body);
    Read(body, by, out);
  };
  d.rules = ai_rules;
  d.errors = flat;
  d.loose_values_in = "sampler";
}
const dialect ai_chat = like(infer_chat, "ai_chat", as_ai00<read_named_conversation>);
const dialect ai_completions = like(infer_completions, "ai_completions", as_ai00<read_prompt>);

const dialect ai_choices = like(completions, "ai_choices", [](dialect& d) {
  d.prompt_field = "choices";
  d.read_prompts = read_choices;
  d.read_more = read_scoring;
  d.errors = flat;
  d.sessions = false;
  d.lenient = true;
});

const dialect resume = like(chat, "resume", [](dialect& d) { d.errors = flat; });

}  // namespace dialects

namespace {

/// Rejects a batch with more answers than the limit, with the legacy message for clients of the older servers.
void refuse_size(std::size_t answers, std::size_t most, understood& found) {
  const auto& as = *found.as;
  if (as.errors == error_style::openai) {
    found.request =
        error{error_kind::invalid_argument,
              std::string(as.prompt_field) + " asks for more than " + std::to_string(most) + " answers in one request",
              std::string(as.prompt_field)};
    return;
  }
  found.request = error{error_kind::invalid_argument, "bsz overflow, Max bsz=" + std::to_string(most),
                        std::string(as.prompt_field)};
  json_writer(found.refusal)
      .begin_object()
      .key("error")
      .value(found.request.error().message)
      .key("request_bsz")
      .value(answers)
      .key("max_bsz")
      .value(most)
      .end_object();
}

const config::sampler_defaults& sampler_for(const model_preset& preset, const generation_request& request) {
  if (request.tool_names) return preset.tools;
  return request.think == think_mode::off ? preset : preset.thinking;
}

void read(const object_reader& body, const reading& by, generation_request& out) {
  out.writer = lasting(*by.as.writer);
  out.prompt_field = by.as.prompt_field;
  out.lenient = by.as.lenient;
  read_constraint(body, out);
  by.as.read_prompts(body, by, out);
  read_delivery(body, by, out);
  if (by.as.thinks) read_thinking(body, by.preset, out);
  sampling_rules rules = by.as.rules(by.preset, sampler_for(by.preset, out));
  if (rules.stop_replaces && body.value("stop")) rules.turn_ends.clear();
  if (out.style.turns == turn_form::headings) rules.turn_ends.emplace_back("\n### User");
  if (const auto end = trimmed(out.style.end); !end.empty() && out.style.turns == turn_form::names)
    rules.turn_ends.emplace_back(end);
  read_sampling(body, rules, by.limits, out.sampling);
  out.penalises_prompt = !rules.temperature_only && body.boolean("global_penalty").value_or(rules.penalises_prompt);
  if (out.constraint && out.constraint->marks.empty())
    rules.turn_ends.clear();  // the text ends itself, and may contain them
  read_stops(body, rules.turn_ends, by.limits, out);
  if (by.as.read_more) by.as.read_more(body, by, out);
  read_beginning(body, by.limits, out);
  if (by.as.sessions) read_session(body, out);
  if (out.constraint) out.constraint->after = opening_of(out);
  const bool goes_on = out.session && out.session->go_on;  // the form is that of the earlier request
  if (!goes_on && opening_of(out) != answer_form::thinking) out.thoughts.reset();
}

}  // namespace

understood read_request(std::string_view text, const dialect& spoken, const model_preset& preset,
                        const request_limits& limits) {
  const dialect* as = &spoken;
  std::vector<std::string> ignored;
  auto request = read_body(text, limits, [&](const object_reader& plain) {
    if (spoken.choose) as = spoken.choose(plain);
    generation_request out;
    asked_fields asked;
    asked.note("password");  // read earlier, by the authentication
    const object_reader body = limits.tells_ignored ? plain.noting(asked) : plain;
    read(as->loose_values_in.empty() ? body : body.loosely(as->loose_values_in), {*as, preset, limits}, out);
    if (limits.tells_ignored) ignored = plain.others(asked);
    return out;
  });
  understood found{as, std::move(request), {}, std::move(ignored)};
  if (found.request)
    if (const std::size_t prompts = found.request->prompts.size() + found.request->prompts_left_out,
        answers = prompts * found.request->best_of;
        answers > limits.prompts_max)
      refuse_size(answers, limits.prompts_max, found);
  return found;
}

}  // namespace skein::protocol
