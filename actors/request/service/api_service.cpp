#include "actors/request/service/api_service.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "actors/request/call/auth.hpp"
#include "actors/request/call/memory.hpp"
#include "actors/request/call/route.hpp"
#include "actors/request/responses/input_count_call.hpp"
#include "actors/request/responses/response_routes.hpp"
#include "actors/request/service/answer_start.hpp"
#include "actors/request/service/browser_guard.hpp"
#include "actors/request/service/cors.hpp"
#include "actors/request/service/exchange.hpp"
#include "actors/request/service/page_route.hpp"
#include "actors/request/service/watched_response.hpp"
#include "actors/request/sessions/admin_routes.hpp"
#include "actors/request/status/health.hpp"
#include "actors/request/status/metrics_page.hpp"
#include "actors/request/status/server_control.hpp"
#include "actors/request/status/server_status.hpp"
#include "protocol/json/http_error.hpp"
#include "protocol/server/models_response.hpp"

namespace skein::request {
namespace {

using connection::header_list;
using protocol::error_style;

error no_route(const connection::request_head& head) {
  return {error_kind::not_found, "there is no route " + head.method + " " + head.path, ""};
}

bool has_method(std::string_view list, std::string_view method) {
  while (!list.empty()) {
    const std::size_t comma = list.find(", ");
    if (list.substr(0, comma) == method) return true;
    list = comma == std::string_view::npos ? "" : list.substr(comma + 2);
  }
  return false;
}

/// The models that `who` may use, each followed by its tuned states if it is in memory. The current model is first.
std::vector<protocol::model_card> cards_of(const loaded_models& models, const caller& who, bool also_resting) {
  std::vector<protocol::model_card> cards;
  for (const auto& place : models.places()) {
    const bool was_there = !place.card.device.empty();
    if (!who.may_use(place.names.front()) || !(place.model || (also_resting && was_there))) continue;
    cards.push_back(place.card);
    if (!place.model) {
      cards.back().status = place.why == loaded_models::absence::coming ? "loading" : "available";
      continue;
    }
    for (const auto& state : *place.model->tuned.all()) {
      cards.push_back(place.card);
      cards.back().parent = place.card.id;
      cards.back().id += ' ' + state.name;
      cards.back().initial_state = state.identity;
    }
  }
  return cards;
}

}  // namespace

const std::vector<api_service::route>& api_service::routes() {
  using s = api_service;
  namespace of = session_routes;
  using tuned = tuned_state_call::task;
  using asked = response_question::task;
  static constexpr std::string_view get = "GET, HEAD", post = "POST";
  constexpr auto openai = error_style::openai, flat = error_style::flat, detail = error_style::detail;
  namespace dialects = protocol::dialects;
  const auto speaks = [](std::string_view path, const protocol::dialect& d) -> route {
    return {path, post, &s::generate, d.errors, false, true, &d};
  };
  const auto needs_admin = [](route r) {
    r.needs_admin = true;
    return r;
  };
  const auto early = [](route r) {
    r.while_loading = true;
    return r;
  };
  static const std::vector<route> table{
      early({"/livez", get, &s::tell_probe<live>, openai, true}),
      early({"/readyz", get, &s::tell_probe<ready>, openai, true}),
      early({"/health", get, &s::tell_probe<health>, openai, true}),
      early({"/v1/health", get, &s::tell_probe<health>, openai, true}),
      early({"/healthz", get, &s::tell_probe<healthz>, flat, true}),
      early({"/healthcheck", get, &s::tell_probe<healthcheck>, flat, true}),
      early({"/status", get, &s::tell_probe<runner_status>, detail}),
      early({"/version", get, &s::tell_version, openai, true}),
      early(needs_admin({"/metrics", get, &s::tell_metrics})),
      early({"/", get, &s::tell_page, openai, true}),
      early({"/web/{*}", get, &s::tell_page, openai, true}),
      early({"/openapi.json", get, &s::tell_openapi, openai, true}),

      {"/v1/models", get, &s::tell_models},
      {"/openai/v1/models", get, &s::tell_models},
      {"/api/oai/v1/models", get, &s::tell_models},
      {"/api/oai/models", get, &s::tell_models},
      {"/models", get, &s::tell_models_array},
      {"/v1/models/{*}", get, &s::tell_model},
      {"/openai/v1/models/{*}", get, &s::tell_model},

      speaks("/v1/chat/completions", dialects::chat_or_batch),
      speaks("/openai/v1/chat/completions", dialects::spoken_chat),
      speaks("/v1/completions", dialects::text_or_chat),
      speaks("/openai/v1/completions", dialects::completions),

      {"/v1/responses", post, &s::respond, openai, false, true, &dialects::responses},
      {"/v1/responses", "GET", &s::open_socket, openai, false, false, &dialects::socket},
      {"/v1/responses/{}", get, &s::ask_response<asked::tell>},
      {"/v1/responses/{}", "DELETE", &s::ask_sessions<response_routes::remove>},
      {"/v1/responses/input_tokens", post, &s::count_input},
      {"/v1/responses/{}/continue", post, &s::ask_response<asked::go_on>},
      {"/v1/responses/{}/cancel", post, &s::ask_response<asked::cancel>},
      {"/v1/conversations", post, &s::ask_sessions<response_routes::make_conversation>},
      {"/v1/conversations/{}", get, &s::ask_sessions<response_routes::conversation>},
      {"/v1/conversations/{}", post, &s::ask_sessions<response_routes::change_conversation>},
      {"/v1/conversations/{}", "DELETE", &s::ask_sessions<response_routes::remove_conversation>},
      {"/v1/conversations/{}/items", get, &s::ask_sessions<response_routes::conversation_items>},
      {"/v1/conversations/{}/items", post, &s::refuse_new_items},
      {"/v1/conversations/{}/items/{}", get, &s::ask_sessions<response_routes::conversation_item>},
      {"/v1/conversations/{}/items/{}", "DELETE", &s::refuse_item_removal},
      {"/v1/responses/{}/input_items", get, &s::ask_sessions<response_routes::input_items>},

      speaks("/chat/completions", dialects::infer_chat),
      speaks("/completions", dialects::infer_completions),
      speaks("/api/oai/v1/chat/completions", dialects::ai_chat),
      speaks("/api/oai/chat/completions", dialects::ai_chat),
      speaks("/api/oai/v1/completions", dialects::ai_completions),
      speaks("/api/oai/completions", dialects::ai_completions),
      speaks("/api/oai/v1/chooses", dialects::ai_choices),
      speaks("/api/oai/chooses", dialects::ai_choices),
      {"/api/oai/v1/states", post, &s::refuse_states},
      {"/api/oai/states", post, &s::refuse_states},
      {"/api/oai/v1/embeds", post, &s::refuse_embeddings},
      {"/api/oai/embeds", post, &s::refuse_embeddings},
      {"/api/oai/v1/embeddings", post, &s::refuse_embeddings},
      {"/api/oai/embeddings", post, &s::refuse_embeddings},
      {"/api/embeddings", post, &s::refuse_embeddings},
      {"/api/embed", post, &s::refuse_embeddings},
      speaks("/v2/chat/completions", dialects::batch_v2),
      speaks("/v3/chat/completions", dialects::batch_v3),
      speaks("/big_batch/completions", dialects::big_batch),
      speaks("/v1/batch/completions", dialects::single_events),
      speaks("/FIM/v1/batch-FIM", dialects::fill_in),
      speaks("/infill", dialects::infill),
      speaks("/translate/v1/batch-translate", dialects::translate),
      speaks("/state/chat/completions", dialects::state),
      speaks("/multi_state/chat/completions", dialects::multi_state),

      {"/v1/embeddings", post, &s::refuse_embeddings},
      {"/openai/v1/embeddings", post, &s::refuse_embeddings},
      {"/v1/engines/{}/embeddings", post, &s::refuse_embeddings},
      {"/engines/{}/embeddings", post, &s::refuse_embeddings},
      {"/embeddings", post, &s::refuse_embeddings},
      {"/embedding", post, &s::refuse_embeddings},
      {"/tokenize", post, &s::tokenize<text_task::tokenize>, openai, false, true},
      {"/detokenize", post, &s::tokenize<text_task::detokenize>, openai, false, true},
      {"/apply-template", post, &s::tokenize<text_task::apply_template>, openai, false, true},
      {"/v1/tokens/count", post, &s::tokenize<text_task::count>, flat, false, true},

      {"/v1/server/status", get, &s::tell_status, flat},
      {"/v1/server/stop", post, &s::control<order::stop>, flat, false, true},
      {"/v1/server/pause", post, &s::control<order::pause>, flat, false, true},
      speaks("/v1/server/resume", dialects::resume),

      {"/v1/sessions", get, &s::ask_tenant<of::list>},
      {"/v1/sessions/{}", get, &s::ask_tenant<of::describe>},
      {"/v1/sessions/{}", post, &s::ask_tenant<of::label>},
      {"/v1/sessions/{}", "PUT", &s::ask_tenant<of::import_file>},
      {"/v1/sessions/{}", "DELETE", &s::ask_tenant<of::remove>},
      {"/v1/sessions/{}/versions", get, &s::ask_tenant<of::versions>},
      {"/v1/sessions/{}/export", get, &s::ask_tenant<of::export_file>},
      {"/v1/sessions/{}/state", get, &s::ask_tenant<of::export_file>},
      {"/v1/sessions/{}/fork", post, &s::ask_tenant<of::fork>},
      {"/v1/sessions/{}/rollback", post, &s::ask_tenant<of::rollback>},
      {"/state/status", post, &s::ask_tenant<of::state_status>, flat, false, true},
      {"/state/delete", post, &s::ask_tenant<of::state_delete>, flat, false, true},
      {"/multi_state/status", post, &s::ask_tenant<of::state_status>, flat, false, true},
      {"/multi_state/delete", post, &s::ask_tenant<of::state_delete>, flat, false, true},

      {"/admin/state/{}", "POST, PUT", &s::ask_sessions<administer>, flat, false, false, nullptr, true},

      needs_admin({"/loadstatemodel", post, &s::change_states<tuned::load>, detail, false, true}),
      needs_admin({"/removestatemodel", post, &s::change_states<tuned::remove>, detail, false, true}),
      needs_admin({"/mrss_loadstatemodel", post, &s::change_states<tuned::load_mixture>, detail, false, true}),
      needs_admin({"/mrss_set_gatingweight", post, &s::change_states<tuned::set_weights>, detail, false, true}),

      needs_admin({"/loadmodel", post, &s::change_model<model_call::form::load_file>, detail, false, true}),
      needs_admin({"/removemodel", post, &s::change_model<model_call::form::remove>, detail, false, true}),
      needs_admin({"/v1/model/load", post, &s::change_model<model_call::form::load_id>, flat, false, true}),
      needs_admin({"/switch-model", post, &s::change_model<model_call::form::switch_model>, detail, false, true}),
      needs_admin({"/update-config", post, &s::change_model<model_call::form::set_defaults>, detail, false, true}),
  };
  return table;
}

void api_service::exchange::find_route() {
  for (const route& r : routes()) {
    auto parts = match_path(r.pattern, head.raw_path);
    if (!parts || (r.admin && !head.admin)) continue;
    if (!near) near = &r;
    allow += allow.empty() ? "" : ", ";
    allow += r.methods;
    if (way || !has_method(r.methods, head.method)) continue;
    way = near = &r;
    path = std::move(*parts);
  }
}

api_service::api_service(std::shared_ptr<const service_context> context, request_hub& hub,
                         std::function<void(std::function<void()>)> post)
    : context_(std::move(context)), hub_(hub), post_(std::move(post)), responses_(context_, hub_, post_) {}

header_list api_service::refusal_headers(const header_list& fields) { return start_answer(fields, *context_).headers; }

/// Called for requests that the connection itself refuses.
std::string api_service::error_body(unsigned status, std::string_view message, std::string_view target) {
  context_->metrics->of(hub_.io_thread()).count_exchange("none", "", status);
  return protocol::error_body(status, message, exchange::errors_of(target));
}

api_service::made_call api_service::accept(const connection::request_head& head,
                                           std::shared_ptr<connection::response_writer> out) {
  answer_start start = start_answer(head, *context_);
  exchange x{.head = head,
             .out = std::move(out),
             .headers = std::move(start.headers),
             .name = std::move(start.name),
             .path = {},
             .allow = {}};
  if (head.method == "OPTIONS" && may_ask_first(x)) {
    x.out->respond(204, std::move(x.headers), "");
    return nullptr;
  }
  x.find_route();
  watch(x);
  if (!admit(x)) return nullptr;
  x.share =
      head.admin ? share_of_operator(*context_) : share_of(*context_, *x.who, head.remote_address, x.authenticated);
  x.out->charge(x.share);
  if (!x.way && x.allow.empty())
    x.refuse(no_route(head));
  else if (!x.way)
    x.refuse(protocol::method_not_allowed(x.allow + ", OPTIONS", x.errors()));
  else if (context_->loading && !x.way->while_loading)
    x.refuse({error_kind::unavailable, "the model is loading", ""});
  else
    return (this->*x.way->handler)(x);
  return nullptr;
}

/// From here on the exchange is counted and logged.
void api_service::watch(exchange& x) {
  exchange_facts facts;
  facts.route = x.way ? x.way->pattern : "none";
  facts.method = x.head.method;
  facts.path = x.head.path;
  facts.request_name = x.name;
  facts.errors = x.errors();
  facts.began = context_->time->now();
  facts.quiet = x.way && (x.way->open || x.way->handler == &api_service::tell_metrics);
  auto* streams = context_->connections ? &context_->connections->streams : nullptr;
  x.watched = std::make_shared<watched_response>(std::move(x.out), std::move(facts),
                                                 context_->metrics->of(hub_.io_thread()), streams, *context_->time);
  x.out = x.watched;
}

/// Whether `Host` names this server. Checked only if no secret protects it.
bool api_service::is_addressed_here(const exchange& x) const {
  return context_->guarded() || request::is_addressed_here(x.head, context_->settings.server.host_names);
}

/// Whether a preflight is answered. With a password it is answered for every page, since the request itself needs the
/// secret.
bool api_service::may_ask_first(const exchange& x) const {
  return context_->guarded() ||
         (is_addressed_here(x) && !is_from_foreign_page(x.head, context_->settings.server.cors_origins));
}

/// Whether the route serves pages of other origins too: the chat page's files, which other pages may link to but not
/// read, and translation if the operator opened it.
bool api_service::serves_foreign_pages(const exchange& x) const {
  if (!x.way) return false;
  const bool is_link = x.way->handler == &api_service::tell_page && x.head.field("origin").empty();
  return is_link || (x.way->dialect && x.way->dialect->may_be_open && context_->settings.server.open_translation);
}

/// Whether the client may use the route, or may still present the password in the body. Refuses it otherwise.
bool api_service::admit(exchange& x) {
  const auto& settings = context_->settings;
  const bool translates = x.way && x.way->dialect && x.way->dialect->may_be_open && settings.server.open_translation;
  const bool looks = x.way && x.way->handler == &api_service::tell_metrics && settings.server.open_metrics;
  const bool foreign = is_from_foreign_page(x.head, settings.server.cors_origins) && !serves_foreign_pages(x);
  x.authenticated = !context_->guarded() || x.head.admin;
  if (!is_addressed_here(x)) {
    x.refuse(foreign_host(x.head));
    return false;
  }
  if (foreign && (!context_->guarded() || !presented_secret(x.head))) {
    x.refuse(foreign_page());
    return false;
  }
  if (!foreign && (x.authenticated || (x.way && x.way->open) || looks)) return true;
  if (translates) {
    x.authenticated = true;
    x.who = guest();
    return true;
  }
  login tried = log_in(x.head, *context_, x.errors());
  if (tried.refusal) {
    if (tried.refusal->status == 429) x.watched->be_quiet();
    x.refuse(*tried.refusal);
    return false;
  }
  if (tried.who) {
    x.authenticated = true;
    x.who = std::move(tried.who);
    x.watched->set_key(x.who->key);
    const bool may = x.who->admin || !x.way || !x.way->needs_admin;
    if (!may) x.refuse(no_admin());
    return may;
  }
  if (settings.server.json_password && x.way && x.way->body_may_tell) return true;
  refuse_visitor(x);
  return false;
}

/// Refuses a request without any secret. Floods of them do not fill the log.
void api_service::refuse_visitor(exchange& x) {
  const auto wait = context_->logins->judge_visit(x.head.remote_address, context_->time->now());
  if (!wait) return x.refuse(no_password());
  x.watched->be_quiet();
  x.refuse(protocol::to_http(too_many_visits(), retry_after(*wait), x.errors()));
}

/// Whether the client may see data of all clients. Wrong secrets are counted here too.
bool api_service::is_operator(const exchange& x) const {
  if (!context_->guarded() || x.head.admin) return true;
  const caller_ref who = log_in(x.head, *context_, x.errors()).who;
  return who && who->admin;
}

template <probe (*Probe)(const service_context&, audience)>
api_service::made_call api_service::tell_probe(exchange& x) {
  const probe p = Probe(*context_, is_operator(x) ? audience::operators : audience::strangers);
  if (p.status == 503) x.headers.emplace_back("Retry-After", "1");
  x.answer(p.status, p.body);
  return nullptr;
}

api_service::made_call api_service::tell_metrics(exchange& x) {
  const auto dialect = metrics::exposition::chosen(x.head.field("accept"));
  header_list all = std::move(x.headers);
  all.emplace_back("Content-Type", metrics::exposition::content_type(dialect));
  x.out->respond(200, std::move(all), metrics_page(*context_, dialect));
  return nullptr;
}

api_service::made_call api_service::tell_version(exchange& x) {
  x.answer(200, version_body());
  return nullptr;
}

api_service::made_call api_service::tell_page(exchange& x) {
  if (!context_->settings.server.web_page || !answer_page(x.head, *x.out)) x.refuse(no_route(x.head));
  return nullptr;
}

api_service::made_call api_service::tell_openapi(exchange& x) {
  answer_openapi(x.head, std::move(x.headers), *x.out);
  return nullptr;
}

api_service::made_call api_service::tell_models(exchange& x) {
  const auto& models = *context_->models;
  auto available = models.available();
  std::erase_if(available, [&](const std::string& id) { return !x.who->may_use(id); });
  const auto current = models.current();
  const std::string_view loaded = current && x.who->may_use(current->id()) ? current->id() : std::string_view();
  x.answer(200, protocol::models_list(cards_of(models, *x.who, true), loaded, available));
  return nullptr;
}

api_service::made_call api_service::tell_models_array(exchange& x) {
  x.answer(200, protocol::models_array(cards_of(*context_->models, *x.who, false)));
  return nullptr;
}

/// Finds the model by its id in the list, or by another name.
api_service::made_call api_service::tell_model(exchange& x) {
  const std::string& id = x.path.front();
  const auto cards = cards_of(*context_->models, *x.who, true);
  auto found = std::ranges::find(cards, id, &protocol::model_card::id);
  for (const auto& place : context_->models->places())
    if (found == cards.end() && std::ranges::find(place.names, id) != place.names.end())
      found = std::ranges::find(cards, place.names.front(), &protocol::model_card::id);
  if (found != cards.end())
    x.answer(200, protocol::model_body(*found));
  else
    x.refuse({error_kind::not_found, "there is no model '" + id + "'", "model"});
  return nullptr;
}

api_service::made_call api_service::refuse_embeddings(exchange& x) {
  x.refuse({error_kind::unsupported, "embeddings are not supported", ""});
  return nullptr;
}

api_service::made_call api_service::refuse_states(exchange& x) {
  x.refuse({error_kind::unsupported,
            "this route is not supported; GET /v1/sessions/{id}/export returns a session with its state", ""});
  return nullptr;
}

/// A message of a conversation is fed together with its answer, so items cannot be added alone.
api_service::made_call api_service::refuse_new_items(exchange& x) {
  x.refuse({error_kind::unsupported,
            "items can only be added with a response: POST /v1/responses with `conversation` and `input`", "items"});
  return nullptr;
}

/// The state after a turn covers all of its items, so one item cannot be removed.
api_service::made_call api_service::refuse_item_removal(exchange& x) {
  x.refuse(
      {error_kind::unsupported,
       "items can only be removed with their turn: DELETE /v1/responses/{id}, or DELETE /v1/conversations/{id} for all",
       ""});
  return nullptr;
}

template <text_task Task>
api_service::made_call api_service::tokenize(exchange& x) {
  return std::make_unique<tokenize_call>(Task, x.plain(), context_, post_, std::move(x.out));
}

template <model_call::form Form>
api_service::made_call api_service::change_model(exchange& x) {
  return std::make_unique<model_call>(Form, x.plain(), context_, post_, std::move(x.out));
}

api_service::made_call api_service::tell_status(exchange& x) {
  const bool may_see_path = x.authenticated && x.who->admin && context_->guarded();
  return std::make_unique<status_call>(may_see_path, x.plain(), context_, post_, std::move(x.out));
}

template <order What>
api_service::made_call api_service::control(exchange& x) {
  return std::make_unique<server_control_call>(What, x.plain(), context_, post_, std::move(x.out));
}

api_service::made_call api_service::generate(exchange& x) {
  if (context_->draining) {
    x.refuse({error_kind::unavailable, "the server is shutting down", ""});
    return nullptr;
  }
  x.watched->leave_line_to_call();
  return std::make_unique<generation_call>(origin_of(x), context_, hub_, post_, std::move(x.out));
}

api_service::made_call api_service::respond(exchange& x) {
  if (context_->draining) {
    x.refuse({error_kind::unavailable, "the server is shutting down", ""});
    return nullptr;
  }
  x.watched->leave_line_to_call();
  return responses_.start(origin_of(x), std::move(x.out));
}

template <response_question::task What>
api_service::made_call api_service::ask_response(exchange& x) {
  auto question = response_question_of(What, x.path.front(), x.head.query);
  if (!question) {
    x.refuse(question.error());
    return nullptr;
  }
  plain_origin plain = x.plain();
  x.headers = plain.headers;
  call_origin origin = origin_of(x);
  return std::make_unique<response_call>(std::move(*question), std::move(plain), std::move(origin), context_, hub_,
                                         post_, responses_, std::move(x.out));
}

api_service::made_call api_service::count_input(exchange& x) {
  return std::make_unique<input_count_call>(x.plain(), context_, hub_, post_, std::move(x.out));
}

call_origin api_service::origin_of(exchange& x) const {
  call_origin origin;
  if (x.way->dialect) origin.dialect = x.way->dialect;
  origin.errors = x.errors();
  origin.route = x.head.path;
  origin.request_name = x.name;
  origin.client = x.head.remote_address;
  origin.headers = std::move(x.headers);
  origin.authenticated = x.authenticated;
  origin.share = x.share;
  origin.who = x.who;
  origin.received = context_->time->now();
  origin.if_match = x.head.field("if-match");
  origin.request_key = x.head.field("idempotency-key");
  return origin;
}

template <session_question (*Question)(const session_routes::route_input&)>
api_service::made_call api_service::ask_sessions(exchange& x) {
  auto question = Question({std::move(x.path), x.head.query, context_->settings.limits});
  return std::make_unique<session_call>(x.plain(), std::move(question), context_, hub_, post_, std::move(x.out));
}

/// Like ask_sessions; the query field `tenant` selects the tenant.
template <session_question (*Question)(const session_routes::route_input&)>
api_service::made_call api_service::ask_tenant(exchange& x) {
  auto question = Question({std::move(x.path), x.head.query, context_->settings.limits});
  question.tenant = query_field(x.head.query, "tenant");
  return std::make_unique<session_call>(x.plain(), std::move(question), context_, hub_, post_, std::move(x.out));
}

template <tuned_state_call::task What>
api_service::made_call api_service::change_states(exchange& x) {
  return std::make_unique<tuned_state_call>(What, x.plain(), context_, post_, std::move(x.out));
}

}  // namespace skein::request
