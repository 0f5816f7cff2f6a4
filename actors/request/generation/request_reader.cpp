#include "actors/request/generation/request_reader.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "actors/request/call/awaited_model.hpp"
#include "actors/request/call/body_login.hpp"
#include "actors/request/call/new_name.hpp"
#include "actors/request/generation/pausing.hpp"
#include "base/sha256.hpp"
#include "protocol/requests/ignored_fields.hpp"
#include "protocol/requests/request_digest.hpp"
#include "protocol/responses_api/response_id.hpp"

namespace skein::request {
namespace {

/// A random name; with an Idempotency-Key, the one that the same tenant gets for the same key and purpose again.
protocol::random_name name_for(std::string_view purpose, const call_origin& origin) {
  if (origin.request_key.empty()) return new_name();
  std::string text(purpose);
  for (const std::string_view part : {std::string_view(origin.who->tenant), std::string_view(origin.request_key)})
    text.append(1, '\0').append(part);  // neither has a zero byte
  const auto digest = sha256({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  protocol::random_name name;
  std::copy_n(digest.begin(), name.size(), name.begin());
  return name;
}

/// A response's turn is identified by the response's id, which includes the conversation's id. A retry with the same
/// Idempotency-Key gets the same id. A response without a conversation begins one, also if that of its key is known
/// because the turn was deleted and others of it were not.
void name_response(protocol::session_fields& session, const call_origin& origin) {
  if (session.id.empty()) {
    session.id = protocol::conversation_id(name_for("conversation", origin));
    session.from_version = 0;
  }
  session.request_key = protocol::response_id(session.id, name_for("response", origin));
}

bool is_response(const protocol::dialect* as) {
  return as == &protocol::dialects::responses || as == &protocol::dialects::socket;
}

}  // namespace

error too_much_long_work() {
  return {error_kind::overloaded, "too many long requests are being processed; try again soon", ""};
}

/// Passes the result of `work`, which reads that many bytes, to `next`.
template <typename Result>
void request_reader::run(std::size_t bytes, std::function<Result()> work, void (request_reader::*next)(Result)) {
  const bool is_long = bytes > context_->settings.inline_json_bytes_max;
  if (!work_.run<Result>(is_long, std::move(work), [this, next](Result r) { (this->*next)(std::move(r)); }))
    refuse(too_much_long_work());
}

protocol::http_error request_reader::refusal(const error& why, std::chrono::seconds retry_after) const {
  protocol::http_error answer = protocol::to_http(why, retry_after, origin_.errors);
  if (!refusal_.empty()) answer.body = refusal_;
  return answer;
}

std::uint64_t request_reader::body_bytes_max() const {
  return origin_.authenticated ? std::numeric_limits<std::uint64_t>::max()
                               : context_->settings.limits.unauthenticated_body_bytes_max;
}

std::string request_reader::error_body(unsigned status, std::string_view message) const {
  std::string text(message);
  if (status == 413 && !origin_.authenticated)
    text += "; longer bodies need the password in a header (Authorization: Bearer)";
  return protocol::error_body(status, text, origin_.errors);
}

void request_reader::read(std::string body) {
  phase_.enter(read_phase::opening);
  if (const auto held = work_.hold(origin_.share, body.size()); !held) return refuse(held.error());
  auto text = std::make_shared<const std::string>(std::move(body));
  const bool needs_opening = !origin_.authenticated || context_->models->may_choose();
  needs_opening ? open(std::move(text)) : find_model(std::move(text));
}

void request_reader::open(std::shared_ptr<const std::string> text) {
  const std::size_t bytes = text->size();
  auto find = [context = context_, text = std::move(text), as = origin_.dialect]() -> result<opened_body> {
    return opened_body{text, protocol::read_body_head(*text, context->settings.limits, as)};
  };
  run<result<opened_body>>(bytes, std::move(find), &request_reader::log_in);
}

void request_reader::log_in(result<opened_body> body) {
  if (!body) return refuse(body.error());
  protocol::body_head& head = body->head;
  if (head.errors) origin_.errors = *head.errors;
  if (!origin_.authenticated) {
    if (const auto no = judge_body_password(head.password, origin_.client, *context_, origin_.who))
      return refuse(no->why, no->retry_after);
    output_.charge(origin_.share = share_of(*context_, *origin_.who, origin_.client, true));
  }
  const bool resumes = origin_.dialect == &protocol::dialects::resume;
  wanted_ = resumes ? context_->requests->model_of_paused(head.request_id, *origin_.who) : std::move(head.model);
  find_model(std::move(body->text));
}

/// Lenient dialects ignore unknown names, so a name does not start a load there.
loaded_models::meant request_reader::meant() const {
  return context_->models->find(wanted_, origin_.who->admin && !origin_.dialect->lenient);
}

/// A body cannot be parsed without a model. A call waits for a model that is being loaded, up to the queue timeout.
void request_reader::find_model(std::shared_ptr<const std::string> text) {
  const auto meant = this->meant();
  if (auto no = may_not_use(*origin_.who, meant.id)) return refuse(*no);
  if (meant.model) {
    origin_.model = meant.model;
    return parse(std::move(text));
  }
  if (!model_comes(*context_, meant)) return refuse(no_model(origin_.errors));
  phase_.enter(read_phase::awaiting_model);
  unread_ = std::move(text);
}

void request_reader::on_tick(steady_time now) {
  if (!phase_.is(read_phase::awaiting_model)) return;
  const auto refuse_for = [&](error_kind kind, const char* why) { refuse({kind, why, ""}, std::chrono::seconds(5)); };
  if (context_->draining) return refuse_for(error_kind::unavailable, "the server is shutting down");
  const auto meant = this->meant();
  if (meant.model) return find_model(std::exchange(unread_, nullptr));
  if (meant.why != loaded_models::absence::coming)
    return refuse_for(error_kind::unavailable, "the model could not be loaded");
  if (now - origin_.received > context_->settings.queue_timeout())
    refuse_for(error_kind::timeout, "the model was not loaded in time");
}

void request_reader::parse(std::shared_ptr<const std::string> text) {
  if (!call_.on_identified()) return;
  phase_.enter(read_phase::parsing);
  const std::size_t bytes = text->size();
  auto work = [context = context_, origin = origin_, text = std::move(text)]() -> result<read_body> {
    return parsed(*text, origin, *context);
  };
  run<result<read_body>>(bytes, std::move(work), &request_reader::understood);
}

request_reader::read_body request_reader::parsed(const std::string& text, const call_origin& origin,
                                                 const service_context& context) {
  if (origin.dialect == &protocol::dialects::resume) {
    auto again = read_resumption(text, *origin.who, origin.model->served, context);
    if (!again) return {origin.dialect, again.error()};
    return {origin.dialect, parsed_call{std::move(again->request), std::nullopt, std::move(again->paused)}};
  }
  const auto preset = origin.model->preset();
  auto [as, request, refusal, ignored] =
      protocol::read_request(text, *origin.dialect, *preset, context.settings.limits);
  if (!request) return {as, request.error(), std::move(refusal), std::move(ignored)};
  parsed_call call{std::move(*request), std::nullopt, std::nullopt};
  if (is_response(as) && !call.request.store && !origin.request_key.empty())
    return {as, error{error_kind::invalid_argument,
                      "Idempotency-Key requires store to be true: a retry is answered from the stored response",
                      "Idempotency-Key"}};
  if (!call.request.session) return {as, std::move(call), {}, std::move(ignored)};
  if (auto ok = protocol::read_session_headers(origin.if_match, origin.request_key, *call.request.session); !ok)
    return {as, ok.error()};
  if (call.request.session->responds) name_response(*call.request.session, origin);
  call.turn.emplace(call.request);
  if (!origin.request_key.empty()) call.turn->set_digest(protocol::request_digest(text));
  return {as, std::move(call), {}, std::move(ignored)};
}

void request_reader::understood(result<read_body> body) {
  if (!body) return refuse(body.error());
  origin_.errors = body->as->errors;
  refusal_ = std::move(body->refusal);
  if (!body->ignored.empty())
    output_.add_header("X-Skein-Ignored-Fields", protocol::ignored_fields_header(body->ignored));
  if (!body->call) return refuse(body->call.error());
  parsed_call call = std::move(*body->call);
  if (call.resumed) {
    auto taken = take_paused(*call.resumed, *context_);
    if (!taken) return refuse(taken.error());
    call.resumed = std::move(*taken);
  }
  phase_.enter(read_phase::read);
  call_.on_read(std::move(call));
}

}  // namespace skein::request
