#include "actors/request/generation/call_request.hpp"

#include <algorithm>
#include <ctime>
#include <random>
#include <utility>

#include "actors/request/call/new_name.hpp"
#include "actors/request/generation/pausing.hpp"
#include "base/utf8.hpp"
#include "grammar/thought_limit.hpp"
#include "protocol/requests/metadata_fields.hpp"

namespace skein::request {
namespace {

std::mt19937_64& local_random() {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return generator;
}

/// Applies the request's weights to a mixture. A mixture allows only one answer, and no session or prompt scores.
result<void> mix(std::optional<tuned_state>& state, protocol::generation_request& request) {
  const auto no = [](const char* field, const char* complaint) {
    return error{error_kind::unsupported, std::string(field) + " cannot be " + complaint + " for a mixture of states",
                 field};
  };
  const auto& weights = request.mixture_weights;
  if (!state || state->mixture.empty()) {
    if (weights.empty()) return {};
    return error{error_kind::invalid_argument, "mrss_gatingweight needs a mixture of states", "mrss_gatingweight"};
  }
  if (request.session) return no("session_id", "used");
  if (request.n > 1) return no("n", "above 1");
  if (request.best_of > 1) return no("best_of", "above 1");
  if (request.echo && request.sampling.logprobs) return no("echo", "used with logprobs");
  if (request.thoughts && request.thoughts->field.empty()) request.thoughts.reset();  // GPUs have no rules for mixtures
  return weights.empty() ? result<void>() : set_weights(*state, weights, "mrss_gatingweight");
}

/// The state that the request's session began with; none if it is not loaded any more, which the session then refuses.
std::optional<tuned_state> with_identity(const tuned_states::list& states,
                                         const protocol::generation_request& request) {
  const auto found = std::ranges::find(states, request.state_identity, &tuned_state::identity);
  return found == states.end() ? std::nullopt : std::optional(*found);
}

error not_constrained(const std::string& field) {
  return {error_kind::unsupported, field + " is not supported by the device of this model", field};
}

using rule_ref = std::shared_ptr<const sampling::constraint>;

/// For answer_head.
std::string joined(std::span<const std::string> notes) {
  std::string all;
  for (const auto& note : notes) all.append(all.empty() ? "" : "; ").append(note);
  return std::string(utf8_prefix(all, protocol::metadata_value_bytes_max));
}

/// What the tokens of each row must follow; null: nothing. Sets what the call needs to know of it.
result<rule_ref> rule_of(prepared_call& call, const served_model& model, const service_context& context) {
  const protocol::generation_request& request = call.request;
  rule_ref rule;
  if (const auto& wanted = request.constraint; wanted && model.constrains) {
    auto compiled = context.grammars->get(*wanted, model.vocabulary, context.settings.limits);
    if (!compiled) return compiled.error();
    call.constraint_notes = joined((*compiled)->of()->notes());
    if (!(*compiled)->skips_newlines()) call.newlines = protocol::first_newlines::content;
    auto made = grammar::constrain(std::move(*compiled), wanted->field, request.answered);
    if (!made) return made.error();
    rule = std::move(*made);
  } else if (wanted && wanted->marks.empty()) {  // else calls are recognised, but not enforced
    return not_constrained(wanted->field);
  }
  if (!request.thoughts) return rule;
  const bool by_default = request.thoughts->field.empty();
  if (!model.constrains)
    return by_default ? result<rule_ref>(std::move(rule)) : not_constrained(request.thoughts->field);
  auto limited = grammar::limit_thoughts(model.vocabulary, request.thoughts->tokens_max, request.thoughts->field, rule,
                                         request.answered);
  return limited || !by_default ? std::move(limited) : result<rule_ref>(std::move(rule));
}

}  // namespace

void call_request::take(protocol::generation_request request, std::optional<paused_request> resumed) {
  request_ = std::move(request);
  writer_ = request_->writer;
  resumed_ = std::move(resumed);
  if (resumed_) request_->answered = resumed_->answered;
}

bool call_request::takes_long(const loaded_model& model, const service_context& context) const {
  if (text_bytes(*request_) > context.settings.inline_text_bytes_max) return true;
  return request_->constraint && model.served.constrains &&
         !context.grammars->has(*request_->constraint, *model.served.vocabulary);
}

result<void> call_request::choose_beginning(const loaded_model& model, const service_context& context) {
  if (resumed_) {
    beginning_ = resumed_->tuned;
    return {};
  }
  const auto states = model.tuned.all();
  auto chosen = choose_model(model.served.names, *states, request_->model, request_->state_name);
  if (!chosen) {
    error no = chosen.error();
    no.field = request_->state_field;
    return no;
  }
  const bool answers_any_name =
      !context.settings.server.strict_model_names && !context.models->is_available(request_->model);
  if (!chosen->known && !request_->lenient && !answers_any_name)
    return error{error_kind::not_found,
                 context.models->is_available(request_->model)
                     ? "model '" + request_->model + "' is not loaded; POST /v1/model/load loads it"
                     : "there is no model '" + request_->model + "'",
                 "model"};
  beginning_ = request_->state_identity.empty() ? std::move(chosen->state) : with_identity(*states, *request_);
  if (const auto mixed = mix(beginning_, *request_); !mixed) return mixed.error();
  if (!beginning_) return {};
  if (beginning_->temperature && !request_->temperature_named)
    request_->sampling.temperature = *beginning_->temperature;
  if (beginning_->top_p && !request_->top_p_named) request_->sampling.top_p = *beginning_->top_p;
  return {};
}

state_scope call_request::scope(const call_origin& origin) const {
  return {origin.model->served.card.identity, beginning_ ? beginning_->identity : std::string(), origin.who->tenant};
}

const protocol::answer_head& call_request::head(const protocol::generation_request& request, const call_origin& origin,
                                                const session_turn* turn) {
  if (head_) return *head_;
  const served_model& model = origin.model->served;
  const std::string id = turn && turn->responds() && turn->stored() ? turn->key() : "";
  protocol::answer_names names{origin.request_name, request.stream, new_name(), id};
  head_ = {request.writer->id(names), request.lenient ? request.model : model.names.front(),
           model.fingerprint,         std::time(nullptr),
           request.include_usage,     "",
           request.tool_notes};
  return *head_;
}

answer_so_far call_request::so_far(const answer_state* answer, bool begun) const {
  if (answer) return {answer->call().request.writer.get(), &answer->head(), begun};
  return head_ ? answer_so_far{writer_.get(), &*head_} : answer_so_far();
}

void call_request::feed(protocol::fed_text text, const session_turn& turn) {
  if (request_->echo && !request_->chat && !turn.continues()) text.known = turn.known_prompt();
  request_->to_feed = std::move(text);
  if (!turn.continues()) return;
  const persistence::version_record& unfinished = *turn.opened().unfinished;
  request_->goes_on_after = unfinished.tokens;
  if (request_->constraint) request_->constraint->after = turn.continued_form();
  if (turn.continued_form() != protocol::answer_form::thinking) request_->thoughts.reset();
  const std::size_t said = std::min<std::size_t>(unfinished.tokens.size(), unfinished.prompt_tokens);
  request_->answered.assign(unfinished.tokens.begin() + static_cast<std::ptrdiff_t>(said), unfinished.tokens.end());
}

std::function<result<prepared_call>()> call_request::preparation(std::shared_ptr<const service_context> context,
                                                                 model_ref model, std::stop_token gone) {
  auto taken = std::make_shared<protocol::generation_request>(std::move(*request_));
  request_.reset();
  return [context = std::move(context), model = std::move(model), gone = std::move(gone),
          taken = std::move(taken)]() -> result<prepared_call> {
    auto call = prepare(std::move(*taken), model->served, context->settings, gone);
    if (!call) return call;
    auto rule = rule_of(*call, model->served, *context);
    if (!rule) return rule.error();
    call->request.sampling.rule = std::move(*rule);
    return call;
  };
}

std::size_t call_request::complete(prepared_call& call, const session_turn* turn,
                                   const config::pause_settings& limits) const {
  if (turn && turn->continues() && !call.request.reasoning_raw) call.form = turn->continued_form();
  if (resumed_) call.form = resumed_->form;
  if (!turn && may_be_paused(call, resumed_.has_value(), limits)) call.pause_tokens_max = limits.tokens_max;
  if (!call.request.seed_given) call.request.sampling.seed = local_random()();
  if (!turn && call.pause_tokens_max == 0) return held_bytes(call);
  const std::size_t copies = turn || resumed_ ? 2 : 1;  // of the prompt: for notes and the log, or to resume it
  return held_bytes(call) + copies * call.prompts.front().size() * sizeof(token_id);
}

void call_request::keep_paused(const answer_state& answer, std::shared_ptr<const running_request> was,
                               const served_model& model, const service_context& context) const {
  paused_request paused = pause(answer, std::move(was), resumed());
  paused.tuned = beginning_;
  paused.model_identity = model.card.identity;
  paused.since = context.time->now();
  context.requests->keep(std::move(paused));
}

void call_request::give_back_resumed(const service_context& context) {
  if (!resumed_) return;
  resumed_->since = context.time->now();
  context.requests->keep(std::move(*resumed_));
  resumed_.reset();
}

}  // namespace skein::request
