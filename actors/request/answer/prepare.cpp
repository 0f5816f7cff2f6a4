#include "actors/request/answer/prepare.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "actors/request/call/memory.hpp"
#include "protocol/chat/chat_template.hpp"
#include "protocol/json/json_writer.hpp"
#include "protocol/server/tokenize_api.hpp"
#include "sampling/penalties.hpp"
#include "tokenizer/detokenizer.hpp"

namespace skein::request {
namespace {

using protocol::generation_request;

result<void> check_ids(const std::vector<token_id>& ids, std::uint32_t vocab, const std::string& field) {
  for (token_id id : ids)
    if (id < 0 || static_cast<std::uint32_t>(id) >= vocab)
      return error{error_kind::invalid_argument,
                   "token " + std::to_string(id) + " is not in the vocabulary (0 to " + std::to_string(vocab - 1) + ")",
                   field};
  return {};
}

result<void> check_vocabulary_fields(const generation_request& request, std::uint32_t vocab) {
  if (auto r = check_ids(request.sampling.stop_ids, vocab, "stop_token_ids"); !r) return r;
  for (const auto& entry : request.sampling.logit_bias)
    if (auto r = check_ids({entry.token}, vocab, "logit_bias"); !r) return r;
  return {};
}

/// Bans the tokens with which a model closes its reasoning at once ("n" and "</", as rwkv_lightning_cuda does) as
/// second and third sampled token. A vocabulary without them needs no ban.
std::vector<sampling::logit_bias_entry> bans_of_reasoning(const tokenizer::vocabulary& words) {
  std::vector<sampling::logit_bias_entry> bans;
  for (const char* text : {"n", "</"}) {
    std::vector<token_id> tokens;
    if (const auto read = words.encode(text, tokens); read && tokens.size() == 1)
      bans.push_back({tokens.front(), sampling::ban, 1, 3});
  }
  return bans;
}

std::size_t prompt_count(const generation_request& request) { return request.chat ? 1 : request.prompts.size(); }

/// The text of a call's only prompt if it is rendered, or new to a session.
std::optional<protocol::fed_text> take_fed(generation_request& request) {
  if (request.to_feed) return std::exchange(request.to_feed, std::nullopt);
  if (!request.chat) return std::nullopt;
  return protocol::text_to_feed(protocol::render_turns(request.messages, request.think, request.style), 0);
}

/// Moves the text or tokens of one prompt out of the request.
protocol::prompt_input take_prompt(generation_request& request, std::size_t which) {
  protocol::prompt_input prompt = std::move(request.prompts[which]);
  if (prompt.after_lead) prompt.text.insert(0, request.lead);
  if (request.suffix) prompt.text = protocol::fim_prompt(prompt.text, *request.suffix);
  return prompt;
}

/// The number of tokens that make up the first `bytes` of their text; 0 if a token crosses that boundary.
std::uint32_t tokens_at(std::size_t bytes, const std::vector<token_id>& tokens, const tokenizer::vocabulary& words) {
  std::size_t at = 0, count = 0;
  while (at < bytes && count < tokens.size()) at += words.text(tokens[count++]).size();
  return at == bytes ? static_cast<std::uint32_t>(count) : 0;
}

/// The tokens of one prompt, at least one. Errors name `field`.
result<std::vector<token_id>> tokens_of(protocol::prompt_input prompt, bool pad_zero, const std::string& field,
                                        const served_model& model, const protocol::request_limits& limits) {
  std::vector<token_id> tokens = std::move(prompt.tokens);
  if (prompt.is_tokens) {
    if (auto ok = check_ids(tokens, model.vocab, field); !ok) return ok.error();
  } else {
    if (auto count = model.vocabulary->encode(prompt.text, tokens); !count) {
      error e = count.error();
      e.field = field;
      return e;
    }
  }
  if (tokens.empty() || pad_zero) tokens.insert(tokens.begin(), end_of_text);  // the start of a text, as in training
  if (tokens.size() > limits.prompt_tokens_max)
    return error{error_kind::too_large,
                 "the prompt has " + std::to_string(tokens.size()) + " tokens; at most " +
                     std::to_string(limits.prompt_tokens_max) + " are allowed",
                 field};
  return tokens;
}

/// The part of a prompt whose tokens count as sampled: all of it, or the tokens that an earlier run of the same answer
/// sampled.
std::span<const token_id> sampled_before(const std::vector<token_id>& tokens, const generation_request& request) {
  if (request.penalises_prompt) return tokens;
  return std::span(tokens).last(std::min<std::size_t>(tokens.size(), request.sampling.sampled_before));
}

/// Bytes that one prompt and its rows take while they wait and run.
std::size_t held_bytes(const std::vector<token_id>& prompt, const generation_request& request) {
  const auto& sampling = request.sampling;
  const std::size_t row_bytes = sizeof sampling + sampling.logit_bias.size() * sizeof(sampling::logit_bias_entry) +
                                sampling.stop_ids.size() * sizeof(token_id);
  const bool twice = request.echo || request.prompts.size() > 1;  // one for the device, one for the answer
  const std::size_t copies = twice ? 2 : 1;
  return prompt.size() * sizeof(token_id) * copies + row_bytes * rows_per_prompt(request);
}

std::size_t held_bytes(const sampling::shared_penalties& prior) {
  return prior ? prior->size() * sizeof(sampling::token_penalty) : 0;
}

/// Bytes of a request's texts besides its prompt, which it keeps until it ends.
std::size_t kept_bytes(const generation_request& request) {
  std::size_t bytes = (request.writer ? request.writer->kept_bytes() : 0) + request.model.size() + request.user.size() +
                      request.state_name.size() + request.tool_notes.size();
  const auto add = [&](const std::vector<std::string>& texts) {
    for (const auto& text : texts) bytes += sizeof text + text.size();
  };
  add(request.stop);
  if (request.tool_names) add(*request.tool_names);
  if (!request.constraint) return bytes;
  add(request.constraint->marks);
  const auto schema_bytes = [](const protocol::schema_text& of) {
    return sizeof of + of.text.size() + of.field.size() + of.relaxed.size();
  };
  for (const auto& [name, arguments] : request.constraint->calls.functions)
    bytes += sizeof name + name.size() + schema_bytes(arguments);
  if (const auto& answer = request.constraint->calls.answer) bytes += schema_bytes(*answer);
  return bytes + request.constraint->text.size() + request.constraint->relaxed.size();
}

/// Bytes of JSON of an echoed prompt. Counting stops above `bytes_max`.
std::size_t echo_bytes(const std::vector<token_id>& prompt, const generation_request& request,
                       const tokenizer::vocabulary& vocabulary, std::size_t skipped, std::size_t bytes_max) {
  const std::size_t scored = request.sampling.logprobs ? scored_token_bytes(request.sampling.top_logprobs) : 0;
  tokenizer::utf8_assembler assembler;
  std::string characters;
  std::size_t bytes = 0;
  for (const token_id token : prompt) {
    std::string_view text = vocabulary.text(token);
    const std::size_t cut = std::min(skipped, text.size());
    skipped -= cut;
    if (cut > 0 && cut == text.size()) continue;
    text.remove_prefix(cut);
    characters.clear();
    assembler.push(text, characters);
    bytes += protocol::json_bytes(characters) + scored;
    if (bytes > bytes_max) break;
  }
  return bytes;
}

/// Subtracts the echo, which precedes each choice, from the answer's byte budget. A stream sends a row's echo in one
/// piece, and the echoes of all rows in quick succession: together they must fit into the connection's outbound queue.
result<void> make_room_for_echo(prepared_call& call, const served_model& model, const service_settings& settings) {
  const bool streamed = call.request.stream;
  const std::size_t bytes_max = streamed ? settings.limits.outbound_bytes_max : settings.limits.response_bytes_max;
  std::size_t bytes = protocol::json_bytes(call.echo_known) * call.request.n;
  for (const auto& prompt : call.prompts) {
    bytes += echo_bytes(prompt, call.request, *model.vocabulary, call.echo_skips, bytes_max) * call.request.n;
    if (bytes <= bytes_max) continue;
    return streamed ? protocol::answer_too_long("echo", "limits.outbound_bytes_max", bytes_max)
                    : protocol::response_too_long("echo", settings.limits);
  }
  if (!streamed) call.answer_bytes_max -= bytes;
  return {};
}

}  // namespace

sampling::sampling_params prepared_call::row_params(std::uint32_t prompt, std::uint32_t row) const {
  sampling::sampling_params params = request.sampling;
  params.logit_bias.insert(params.logit_bias.end(), own_bias.begin(), own_bias.end());
  params.stop_ids.insert(params.stop_ids.end(), own_stop_ids.begin(), own_stop_ids.end());
  if (!priors.empty()) params.prior = priors[prompt];
  params.row = row;  // row of its own prompt, so a prompt samples the same in a list as alone
  params.logprobs = params.logprobs || request.best_of > request.n;
  return params;
}

bool prepared_call::stops_at(token_id token) const {
  const auto has = [token](const std::vector<token_id>& ids) { return std::ranges::find(ids, token) != ids.end(); };
  return has(request.sampling.stop_ids) || has(own_stop_ids);
}

std::size_t text_bytes(const generation_request& request) {
  std::size_t bytes = kept_bytes(request);
  if (!request.goes_on_after.empty()) return bytes + request.goes_on_after.size() * sizeof(token_id);
  if (request.to_feed) return bytes + request.to_feed->text.size() + request.to_feed->known.size();
  for (const auto& m : request.messages) bytes += protocol::rendered_bytes_max(m, request.style);
  const std::size_t suffix = request.suffix ? request.suffix->size() : 0;
  for (const auto& p : request.prompts)
    bytes += (p.after_lead ? request.lead.size() : 0) + p.text.size() + suffix + p.tokens.size() * sizeof(token_id);
  return bytes;
}

std::size_t held_bytes(const prepared_call& call) {
  std::size_t bytes = kept_bytes(call.request) + call.echo_known.size();
  for (const auto& p : call.prompts) bytes += held_bytes(p, call.request);
  for (const auto& p : call.priors) bytes += held_bytes(p);
  return bytes;
}

result<prepared_call> prepare(generation_request request, const served_model& model, const service_settings& settings,
                              const std::stop_token& gone) {
  const protocol::request_limits& limits = settings.limits;
  if (request.foreign_stop_ids)
    std::erase_if(request.sampling.stop_ids, [&](token_id id) { return !check_ids({id}, model.vocab, ""); });
  if (auto ok = check_vocabulary_fields(request, model.vocab); !ok) return ok.error();
  const std::string field(request.prompt_field);

  prepared_call call;
  std::size_t held = 0;
  for (std::size_t i = 0; i < prompt_count(request); ++i) {  // one at a time: each text contains the suffix
    if (gone.stop_requested()) return error{error_kind::cancelled, "the client is gone", ""};
    auto fed = take_fed(request);
    const auto input = [&] { return fed ? protocol::prompt_input{fed->text, {}, false} : take_prompt(request, i); };
    auto tokens = request.goes_on_after.empty() ? tokens_of(input(), request.pad_zero, field, model, limits)
                                                : std::exchange(request.goes_on_after, {});
    if (!tokens) return tokens.error();
    if (fed) {
      call.system_tokens = tokens_at(fed->system_bytes, *tokens, *model.vocabulary);
      call.turn_tokens = tokens_at(fed->turn_bytes, *tokens, *model.vocabulary);
      call.echo_skips = fed->added_bytes;
      call.echo_known = std::move(fed->known);
    }
    if (const auto sampled = sampled_before(*tokens, request); !sampled.empty())
      call.priors.push_back(std::make_shared<const std::vector<sampling::token_penalty>>(
          sampling::penalties_of(sampled, request.sampling)));
    held += held_bytes(*tokens, request) + (call.priors.empty() ? 0 : held_bytes(call.priors.back()));
    if (held > settings.key_memory()) return never_fits(held, settings.key_memory());
    call.prompts.push_back(std::move(*tokens));
  }
  if (request.force_reasoning) call.own_bias = bans_of_reasoning(*model.vocabulary);
  if (!request.ignore_eos && model.vocabulary->end() != no_token) call.own_stop_ids = {model.vocabulary->end()};
  call.answer_bytes_max = limits.response_bytes_max;
  call.form = protocol::form_of(request);
  call.score_prompt = request.echo && request.sampling.logprobs;
  if (request.suffix) call.echo_skips += protocol::fim_prompt("", *request.suffix).size();
  request.messages = {};  // the tokens replace them: a waiting request holds its prompt once
  request.prompts = {};
  std::string().swap(request.lead);
  request.suffix.reset();
  call.request = std::move(request);
  if (call.request.echo)
    if (auto ok = make_room_for_echo(call, model, settings); !ok) return ok.error();
  return call;
}

}  // namespace skein::request
