#include <ctime>
#include <utility>

#include "actors/request/generation/generation_call.hpp"
#include "protocol/json/json_writer.hpp"
#include "protocol/responses/sse.hpp"
#include "protocol/server/control_request.hpp"

/// The part of a generation call that other requests can see and interrupt.
namespace skein::request {
namespace {

std::string endpoint_of(const call_origin& origin, const protocol::generation_request& request) {
  if (origin.dialect == &protocol::dialects::resume) return "server.resume";
  if (request.prompt_field == "input") return "responses";
  if (request.chat) return "chat.completions";
  if (request.prompt_field == "prompt") return "completions";
  return request.session ? "state.chat.completions" : "batch.completions";
}

}  // namespace

void generation_call::enlist() {
  const protocol::generation_request& request = *request_;
  if (request.session) session_ = request.session->id;
  auto tell = [post = post_, &hub = hub_, serial = serial_](order what, std::function<void(outcome)> done) {
    post([&hub, serial, what, done = std::move(done)] {
      auto* call = static_cast<generation_call*>(hub.find(serial));
      done(call ? call->obey(what) : outcome::nothing_ran);
    });
  };
  listed_ = std::make_shared<running_request>(
      running_request::facts{origin_.request_name, endpoint_of(origin_, request), model().names.front(), session_,
                             origin_.who->tenant, std::time(nullptr), request.sampling.max_tokens},
      std::move(tell));
  context_->requests->enter(listed_);
}

void generation_call::delist() {
  if (listed_ && !listed_->finished) context_->requests->leave(listed_);
}

/// A request with a slot ends as if its text were complete, with the reason; one without a slot is refused. A session's
/// turn is stored with its text so far, and a response that has an id even without text. A request that cannot be
/// paused runs on.
outcome generation_call::obey(order what) {
  if (ended_ || asked_ == question::commit || (answer_ && answer_->over())) return outcome::nothing_ran;
  const bool pauses = what == order::pause;
  if (pauses && (listed_->admitted_at == 0 || answer_->call().pause_tokens_max == 0)) {
    listed_->pause_requested = false;
    return outcome::refused;
  }
  guarded([&] {
    if (listed_->admitted_at == 0) {
      const bool named = turn_ && turn_->responds() && turn_->stored() && leased_;
      if (!named) return refuse({error_kind::conflict, "Request cancelled", ""});
      if (running_ == 0) return void(obeys_later_ = what);
      answer_->on_admitted(0);
      if (answer_->call().request.stream) begin_stream();
    }
    answer_->stop(pauses ? "paused" : what == order::park ? "client_gone" : "admin_stop");
    if (pauses) keep_paused();
    write_ready();
  });
  return outcome::done;
}

/// Only single chat answers without a session can be paused. Turns of sessions are continued differently.
bool generation_call::may_be_paused(const prepared_call& call) const {
  const bool chat = call.request.chat || resumed_;
  return chat && !turn_ && call.rows_per_prompt() == 1 && !call.request.sampling.logprobs &&
         context_->requests->limits().requests_max > 0;
}

void generation_call::keep_paused() {
  const prepared_call& call = answer_->call();
  const std::vector<token_id>& sampled = answer_->kept().sampled;
  paused_request paused;
  paused.was = listed_;
  paused.request = call.request;
  auto& params = paused.request.sampling;
  params.max_tokens -= static_cast<std::uint32_t>(answer_->usage().completion_tokens);
  params.sampled_before += static_cast<std::uint32_t>(sampled.size());
  paused.tokens = call.prompts.front();
  paused.tokens.insert(paused.tokens.end(), sampled.begin(), sampled.end());
  if (resumed_) paused.answered = resumed_->answered;
  paused.answered.insert(paused.answered.end(), sampled.begin(), sampled.end());
  paused.form = call.form;
  paused.tuned = tuned_;
  paused.model_identity = model().card.identity;
  paused.since = context_->time->now();
  context_->requests->keep(std::move(paused));
}

/// A resumed answer that does not finish goes back to the register, and can be resumed again.
void generation_call::keep_resumed() {
  if (!resumed_) return;
  resumed_->since = context_->time->now();
  context_->requests->keep(std::move(*resumed_));
  resumed_.reset();
}

/// Sends a queue event to a client that requested them.
void generation_call::tell_queue() {
  const auto place = context_->requests->place_of(*listed_);
  std::string json;
  protocol::json_writer out(json);
  out.begin_object().key("object").value("queue.status");
  out.key("status").value(place.position > 0 ? "queued" : "processing").key("ticket").value(place.ticket);
  out.key("queue_position").value(place.position);
  out.key("requests_ahead").value(place.position > 0 ? place.position - 1 : 0);
  out.key("waiting_requests").value(place.waiting).end_object();
  begin_stream();
  write(protocol::sse_event(json));
}

namespace {

error not_paused() { return {error_kind::not_found, "Paused request not found", "request_id"}; }

}  // namespace

/// Takes the paused request that the body names. False: it is gone, and this call is refused.
bool generation_call::take_paused(std::optional<paused_request>& read) {
  if (!read) return true;
  auto taken = context_->requests->take(read->was->what().id, context_->time->now());
  if (taken && taken->was == read->was) {
    read = std::move(taken);
    return true;
  }
  if (taken) context_->requests->keep(std::move(*taken));  // it was resumed and paused again meanwhile
  refuse(not_paused());
  return false;
}

/// The request of a body that names a paused one: streamed like a chat, with the tokens as its prompt. The paused
/// request stays in the register: this runs on the worker pool, and the call may be over before the result is back.
result<generation_call::parsed_call> generation_call::read_resumed(const std::string& text, const caller& who,
                                                                   const served_model& model,
                                                                   const service_context& context) {
  const auto& limits = context.settings.limits;
  const auto id = protocol::parse_control(text, limits);
  if (!id) return id.error();
  if (id->empty()) return error{error_kind::invalid_argument, "Missing request_id parameter", "request_id"};
  auto paused = context.requests->find(*id, context.time->now());
  if (!paused || !who.sees(paused->was->what().tenant)) return not_paused();
  protocol::generation_request request = paused->request;
  auto ok = protocol::read_resume(text, limits, request);
  if (ok && paused->model_identity != model.card.identity)
    ok = error{error_kind::conflict, "the paused request belongs to another model", "model"};
  if (!ok) return ok.error();
  request.stream = true;
  request.chat = false;  // its prompt is tokens, not messages
  request.seed_given = true;
  request.prompts.push_back({"", paused->tokens, true});
  return parsed_call{std::move(request), std::nullopt, std::move(paused)};
}

}  // namespace skein::request
