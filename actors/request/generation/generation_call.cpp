#include "actors/request/generation/generation_call.hpp"

#include <array>
#include <ctime>
#include <random>
#include <utility>

#include "actors/request/call/attempt.hpp"
#include "actors/request/call/awaited_model.hpp"
#include "actors/request/call/body_login.hpp"
#include "actors/request/call/long_work.hpp"
#include "actors/request/call/memory.hpp"
#include "actors/request/call/new_name.hpp"
#include "base/log/log.hpp"
#include "protocol/json/http_error.hpp"
#include "protocol/requests/ignored_fields.hpp"
#include "protocol/requests/request_digest.hpp"
#include "protocol/responses_api/response_id.hpp"

namespace skein::request {
namespace {

constexpr std::size_t logged_prompt_bytes = 4096;

std::mt19937_64& local_random() {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return generator;
}

/// A response's turn is identified by the response's id, which includes the conversation's id.
void name_response(protocol::session_fields& session) {
  if (session.id.empty()) session.id = protocol::conversation_id(new_name());
  session.request_key = protocol::response_id(session.id, new_name());
}

/// Applies the request's weights to a mixture. A mixture allows only one answer, and no session or prompt scores.
result<void> mix(std::optional<tuned_state>& state, const protocol::generation_request& request) {
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
  return weights.empty() ? result<void>() : set_weights(*state, weights, "mrss_gatingweight");
}

}  // namespace

generation_call::generation_call(call_origin origin, std::shared_ptr<const service_context> context, request_hub& hub,
                                 std::function<void(std::function<void()>)> post,
                                 std::shared_ptr<connection::response_writer> out)
    : origin_(std::move(origin)),
      context_(std::move(context)),
      hub_(hub),
      post_(std::move(post)),
      out_(std::move(out)),
      serial_(hub.enter(*this)) {}

generation_call::~generation_call() {
  delist();
  cancel_device_work();
  leave_session();
  hub_.close_ticket(ticket_.number);
  hub_.close_ticket(prefix_ticket_.number);
  hub_.leave(serial_);
}

// ---------------------------------------------------------------- from body to device

std::uint64_t generation_call::body_bytes_max() const {
  return origin_.authenticated ? http_call::body_bytes_max() : context_->settings.limits.unauthenticated_body_bytes_max;
}

std::string generation_call::error_body(unsigned status, std::string_view message) const {
  std::string text(message);
  if (status == 413 && !origin_.authenticated)
    text += "; longer bodies need the password in a header (Authorization: Bearer)";
  return protocol::error_body(status, text, origin_.errors);
}

const protocol::answer_head& generation_call::head(const protocol::generation_request& request) {
  if (head_) return *head_;
  const served_model& model = this->model();
  const std::string turn = turn_ && turn_->responds() && turn_->stored() ? turn_->key() : "";
  protocol::answer_names names{origin_.request_name, request.stream, new_name(), turn};
  head_ = {request.writer->id(names), request.lenient ? request.model : model.names.front(), model.fingerprint,
           std::time(nullptr), request.include_usage};
  return *head_;
}

/// An exception ends only this call, with a 500 or an error event.
void generation_call::guarded(const std::function<void()>& work) {
  const auto done = [&](const std::function<void()>& step) {
    return attempt(origin_.request_name, [&]() -> result<void> {
      step();
      return {};
    });
  };
  const result<void> outcome = done(work);
  if (outcome || done([&] { refuse(outcome.error()); })) return;
  ended_ = true;
  out_->abort();
}

/// Passes the result of `work` to `next`. Long work runs on the worker pool.
template <typename Result>
void generation_call::run(bool is_long, std::function<Result()> work, void (generation_call::*next)(Result)) {
  if (!is_long) return (this->*next)(attempt(origin_.request_name, work));
  auto back = [this_serial = serial_, &hub = hub_, next](Result outcome) {
    if (auto* call = static_cast<generation_call*>(hub.find(this_serial)))
      call->guarded([&] { (call->*next)(std::move(outcome)); });
  };
  const bool taken = run_long(
      *context_, {post_, origin_.request_name, over_.get_token()},
      [work = std::move(work), memory = std::make_shared<byte_budget::lease>(memory_)] {
        auto outcome = work();
        memory->reset();  // before the next stage reserves its own
        return outcome;
      },
      std::move(back));
  if (!taken) refuse({error_kind::overloaded, "too many long requests are being processed; try again soon", ""});
}

void generation_call::body(std::string bytes) {
  guarded([&] { receive(std::move(bytes)); });
}

void generation_call::receive(std::string bytes) {
  read_ = true;
  if (!hold(bytes.size())) return;
  auto text = std::make_shared<const std::string>(std::move(bytes));
  const bool needs_opening = !origin_.authenticated || context_->models->may_choose();
  needs_opening ? open_body(std::move(text)) : find_model(std::move(text));
}

void generation_call::open_body(std::shared_ptr<const std::string> text) {
  const bool is_long = text->size() > context_->settings.inline_json_bytes_max;
  auto find = [context = context_, text, as = origin_.dialect]() -> result<opened_body> {
    return opened_body{text, protocol::read_body_head(*text, context->settings.limits, as)};
  };
  run<result<opened_body>>(is_long, std::move(find), &generation_call::log_in);
}

void generation_call::log_in(result<opened_body> body) {
  if (ended_) return;
  if (!body) return refuse(body.error());
  protocol::body_head& head = body->head;
  if (head.errors) origin_.errors = *head.errors;
  if (!origin_.authenticated) {
    if (const auto no = judge_body_password(head.password, origin_.client, *context_, origin_.who))
      return refuse(no->why, no->retry_after);
    out_->charge(origin_.share = share_of(*context_, *origin_.who, origin_.client, true));
  }
  const bool resumes = origin_.dialect == &protocol::dialects::resume;
  wanted_ = resumes ? context_->requests->model_of_paused(head.request_id) : std::move(head.model);
  find_model(std::move(body->text));
}

/// Lenient dialects ignore unknown names, so a name does not start a load there.
loaded_models::meant generation_call::meant() const {
  return context_->models->find(wanted_, origin_.who->admin && !origin_.dialect->lenient);
}

/// A body cannot be parsed without a model. A call waits for a model that is being loaded, up to the queue timeout. It
/// looks again at each tick; the supervisor ticks all calls after it publishes a model.
void generation_call::find_model(std::shared_ptr<const std::string> text) {
  const auto meant = this->meant();
  if (auto no = may_not_use(*origin_.who, meant.id)) return refuse(*no);
  if (meant.model) {
    origin_.model = meant.model;
    return parse(std::move(text));
  }
  if (!model_comes(*context_, meant)) return refuse(no_model(origin_.errors));
  unread_ = std::move(text);
}

void generation_call::look_for_model(steady_time now) {
  const auto refuse_for = [&](error_kind kind, const char* why) { refuse({kind, why, ""}, std::chrono::seconds(5)); };
  if (context_->draining) return refuse_for(error_kind::unavailable, "the server is shutting down");
  const auto meant = this->meant();
  if (meant.model) return find_model(std::exchange(unread_, nullptr));
  if (meant.why != loaded_models::absence::coming)
    return refuse_for(error_kind::unavailable, "the model could not be loaded");
  if (now - origin_.received > context_->settings.queue_timeout())
    refuse_for(error_kind::timeout, "the model was not loaded in time");
}

/// The caller and the model are known: checks the key's limits.
bool generation_call::enter() {
  const caller& who = *origin_.who;
  if (who.usage) {
    if (const auto no = who.usage->enter(who.limits, context_->time->now())) {
      refuse(no->why, no->retry_after);
      return false;
    }
    place_ = key_lease(who.usage);
  }
  counts_ = &counts().generation(model().names.front(), who.key);
  return true;
}

void generation_call::parse(std::shared_ptr<const std::string> text) {
  if (!enter()) return;
  const bool is_long = text->size() > context_->settings.inline_json_bytes_max;
  auto work = [context = context_, origin = origin_, text = std::move(text)]() -> result<read_body> {
    return read(*text, origin, *context);
  };
  run<result<read_body>>(is_long, std::move(work), &generation_call::understood);
}

generation_call::read_body generation_call::read(const std::string& text, const call_origin& origin,
                                                 const service_context& context) {
  if (origin.dialect == &protocol::dialects::resume)
    return {origin.dialect, read_resumed(text, *origin.who, origin.model->served, context)};
  const auto preset = origin.model->preset();
  auto [as, request, refusal, ignored] =
      protocol::read_request(text, *origin.dialect, *preset, context.settings.limits);
  if (!request) return {as, request.error(), std::move(refusal), std::move(ignored)};
  parsed_call call{std::move(*request), std::nullopt, std::nullopt};
  if (!call.request.session) return {as, std::move(call), {}, std::move(ignored)};
  if (auto ok = protocol::read_session_headers(origin.if_match, origin.request_key, *call.request.session); !ok)
    return {as, ok.error()};
  if (call.request.session->responds) name_response(*call.request.session);
  call.turn.emplace(call.request);
  if (!origin.request_key.empty()) call.turn->set_digest(protocol::request_digest(text));
  return {as, std::move(call), {}, std::move(ignored)};
}

/// Replaces the memory lease of the last stage by one for the next; refuses the request if it does not fit.
bool generation_call::hold(std::size_t bytes) {
  memory_.reset();
  auto memory = hold_memory(origin_.share, bytes);
  if (!memory) {
    refuse(memory.error());
    return false;
  }
  memory_ = std::move(*memory);
  return true;
}

void generation_call::understood(result<read_body> body) {
  if (ended_) return;
  if (!body) return refuse(body.error());
  origin_.errors = body->as->errors;
  refusal_ = std::move(body->refusal);
  if (!body->ignored.empty())
    origin_.headers.emplace_back("X-Skein-Ignored-Fields", protocol::ignored_fields_header(body->ignored));
  if (!body->call) return refuse(body->call.error());
  if (!take_paused(body->call->resumed)) return;
  parsed(std::move(*body->call));
}

void generation_call::begin(protocol::generation_request request) {
  read_ = true;
  guarded([&] {
    if (!enter()) return;
    session_turn turn(request);
    parsed({std::move(request), std::move(turn), std::nullopt});
  });
}

void generation_call::parsed(parsed_call call) {
  request_ = std::move(call.request);
  turn_ = std::move(call.turn);
  resumed_ = std::move(call.resumed);
  enlist();
  if (!choose_beginning() || !hold(text_bytes(*request_))) return;
  turn_ ? open_session() : tokenise();
}

/// Checks the requested model and chooses the tuned state, whose defaults apply to fields that the request omits.
bool generation_call::choose_beginning() {
  if (resumed_) {  // its initial state, which may have been removed since
    tuned_ = resumed_->tuned;
    return true;
  }
  const auto states = origin_.model->tuned.all();
  auto chosen = choose_model(model().names, *states, request_->model, request_->state_name);
  if (!chosen) {
    error no = chosen.error();
    no.field = request_->state_field;
    refuse(no);
    return false;
  }
  const bool answers_any_name =
      !context_->settings.server.strict_model_names && !context_->models->is_available(request_->model);
  if (!chosen->known && !request_->lenient && !answers_any_name) {
    refuse({error_kind::not_found, "there is no model '" + request_->model + "'", "model"});
    return false;
  }
  tuned_ = std::move(chosen->state);
  if (const auto mixed = mix(tuned_, *request_); !mixed) {
    refuse(mixed.error());
    return false;
  }
  if (!tuned_) return true;
  if (tuned_->temperature && !request_->temperature_named) request_->sampling.temperature = *tuned_->temperature;
  if (tuned_->top_p && !request_->top_p_named) request_->sampling.top_p = *tuned_->top_p;
  return true;
}

void generation_call::tokenise() {
  const std::size_t text = text_bytes(*request_);
  const bool is_long = text > context_->settings.inline_text_bytes_max;
  auto work = [context = context_, model = origin_.model, gone = over_.get_token(),
               taken = std::make_shared<protocol::generation_request>(std::move(*request_))] {
    return prepare(std::move(*taken), model->served, context->settings, gone);
  };
  request_.reset();
  run<result<prepared_call>>(is_long, std::move(work), &generation_call::prepared);
}

/// Logs the prompt if log.prompts is set.
void generation_call::log_prompt(const prepared_call& call) const {
  if (!context_->settings.log.prompts) return;
  std::string text;
  for (const token_id token : call.prompts.front()) {
    if (text.size() >= logged_prompt_bytes) break;
    text += model().vocabulary->text(token);
  }
  log::info("prompt", {{"request_id", origin_.request_name},
                       {"prompts", static_cast<std::uint64_t>(call.prompts.size())},
                       {"text", std::string_view(text).substr(0, logged_prompt_bytes)}});
}

void generation_call::prepared(result<prepared_call> call) {
  if (ended_) return;
  if (!call) return refuse(call.error());
  log_prompt(*call);
  if (turn_) {
    if (turn_->continues() && !call->request.reasoning_raw) call->form = turn_->continued_form();
    turn_->set_prompt(call->prompts.front());
  }
  if (resumed_) call->form = resumed_->form;
  if (may_be_paused(*call)) call->pause_tokens_max = context_->requests->limits().tokens_max;
  std::size_t copies = 0;  // of the prompt: for notes and the log, or to resume after a pause
  if (turn_ || call->pause_tokens_max > 0)
    copies = (turn_ || resumed_ ? 2 : 1) * call->prompts.front().size() * sizeof(token_id);
  if (!hold(held_bytes(*call) + copies)) return;
  if (!call->request.seed_given) call->request.sampling.seed = local_random()();
  const auto& head = this->head(call->request);
  answer_.emplace(std::move(*call), model(), head, origin_.request_name);
  if (const auto fits = answer_->make_room_for_frame(context_->settings.limits); !fits) return refuse(fits.error());
  if (turn_) answer_->continue_after(turn_->earlier_answer());
  if (resumed_) answer_->continue_after(resumed_->answered);
  find_prefix();
}

}  // namespace skein::request
