#include "actors/request/api_service.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "actors/request/auth.hpp"
#include "actors/request/cors.hpp"
#include "actors/request/health.hpp"
#include "actors/request/tokenize_call.hpp"
#include "protocol/http_error.hpp"
#include "protocol/models_response.hpp"

namespace skein::request {
namespace {

using connection::header_list;

bool printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

/// The client's X-Request-Id when it is one to three dozen printable characters or so, else a new one.
std::string request_name(const connection::request_head& head) {
  const std::string_view sent = head.field("x-request-id");
  if (!sent.empty() && sent.size() <= 128 && printable(sent)) return std::string(sent);
  thread_local std::mt19937_64 random{std::random_device{}()};
  static constexpr char digits[] = "0123456789abcdef";
  std::string name = "req-";
  for (int i = 0; i < 24; ++i) name += digits[random() % 16];
  return name;
}

std::string_view last_part(std::string_view path, std::string_view prefix) {
  return path.starts_with(prefix) ? path.substr(prefix.size()) : std::string_view();
}

struct generation_route {
  std::string_view path;
  protocol::api shape;
};
constexpr generation_route generation_routes[] = {
    {"/v1/chat/completions", protocol::api::chat_completions},
    {"/openai/v1/chat/completions", protocol::api::chat_completions},
    {"/chat/completions", protocol::api::chat_completions},
    {"/v1/completions", protocol::api::completions},
    {"/openai/v1/completions", protocol::api::completions},
    {"/completions", protocol::api::completions},
};
constexpr std::string_view open_paths[] = {"/health", "/v1/health", "/livez", "/readyz", "/version"};
constexpr std::string_view model_lists[] = {"/v1/models", "/openai/v1/models"};
constexpr std::string_view embedding_paths[] = {"/v1/embeddings", "/openai/v1/embeddings"};

template <typename Range>
bool contains(const Range& range, std::string_view path) {
  return std::ranges::find(range, path) != std::end(range);
}

const generation_route* find_generation(std::string_view path) {
  for (const auto& r : generation_routes)
    if (r.path == path) return &r;
  return nullptr;
}

}  // namespace

/// One request on its way through accept().
struct api_service::exchange {
  const connection::request_head& head;
  std::shared_ptr<connection::response_writer> out;
  header_list headers;  // of every answer
  std::string name;
  bool authenticated = false;

  void answer(unsigned status, std::string body) {
    header_list all = headers;
    all.emplace_back("Content-Type", "application/json");
    out->respond(status, std::move(all), std::move(body));
  }
  void refuse(const protocol::http_error& e) {
    header_list all = headers;
    all.emplace_back("Content-Type", "application/json");
    all.insert(all.end(), e.headers.begin(), e.headers.end());
    out->respond(e.status, std::move(all), e.body);
  }
  void refuse(error e) { refuse(protocol::to_http(e)); }
};

api_service::api_service(std::shared_ptr<const service_context> context, request_hub& hub,
                         std::function<void(std::function<void()>)> post)
    : context_(std::move(context)), hub_(hub), post_(std::move(post)) {}

std::string api_service::error_body(unsigned status, std::string_view message) {
  return protocol::error_body(status, message);
}

std::unique_ptr<connection::http_call> api_service::accept(const connection::request_head& head,
                                                           std::shared_ptr<connection::response_writer> out) {
  exchange x{head, std::move(out), {}, request_name(head)};
  const bool has_password = !context_->settings.password.empty();
  x.headers = cors_headers(head, context_->settings.cors_origins, has_password);
  if (head.method == "OPTIONS" && !x.headers.empty()) {
    const header_list more = preflight_headers(head);
    x.headers.insert(x.headers.end(), more.begin(), more.end());
  }
  x.headers.emplace_back("X-Request-Id", x.name);
  if (head.method == "OPTIONS") {
    x.out->respond(204, std::move(x.headers), "");
    return nullptr;
  }
  x.authenticated = !has_password;
  if (has_password && !contains(open_paths, head.path)) {
    const steady_time now = context_->time->now();
    const credentials given = check_header(head, context_->settings.password);
    login_guard& logins = *context_->logins;
    const auto wait = given == credentials::none ? logins.must_wait(head.remote_address, now)
                                                 : logins.judge(head.remote_address, given == credentials::right, now);
    if (wait) {
      x.refuse(protocol::to_http(too_many_passwords(), retry_after(*wait)));
      return nullptr;
    }
    x.authenticated = given == credentials::right;
    const bool body_may_tell = given == credentials::none && context_->settings.json_password &&
                               head.method == "POST" && find_generation(head.path) != nullptr;
    if (!x.authenticated && !body_may_tell) {
      x.refuse(no_password());
      return nullptr;
    }
  }
  return route(x);
}

std::unique_ptr<connection::http_call> api_service::route(exchange& x) {
  const bool reads = x.head.method == "GET" || x.head.method == "HEAD";
  const std::string_view path = x.head.path;
  const bool get_path = contains(open_paths, path) || contains(model_lists, path) ||
                        !last_part(path, "/v1/models/").empty() || !last_part(path, "/openai/v1/models/").empty();
  const bool post_path =
      find_generation(path) || contains(embedding_paths, path) || path == "/tokenize" || path == "/detokenize";
  if (!get_path && !post_path) {
    x.refuse({error_kind::not_found, "there is no route " + x.head.method + " " + x.head.path, ""});
    return nullptr;
  }
  if (get_path != reads || (post_path && x.head.method != "POST")) {
    x.refuse(protocol::method_not_allowed(get_path ? "GET, HEAD, OPTIONS" : "POST, OPTIONS"));
    return nullptr;
  }
  return get_path ? get(x) : post(x);
}

std::unique_ptr<connection::http_call> api_service::get(exchange& x) {
  const std::string_view path = x.head.path;
  const auto tell = [&](const probe& p) { x.answer(p.status, p.body); };
  if (path == "/livez")
    tell(live(*context_));
  else if (path == "/readyz")
    tell(ready(*context_));
  else if (path == "/version")
    x.answer(200, version_body(*context_));
  else if (contains(open_paths, path))
    tell(health(*context_));
  else if (contains(model_lists, path))
    x.answer(200, protocol::models_list({&context_->model.card, 1}));
  else {
    const std::string_view id = path.substr(path.rfind("/models/") + 8);
    if (std::ranges::find(context_->model.names, id) != context_->model.names.end())
      x.answer(200, protocol::model_body(context_->model.card));
    else
      x.refuse({error_kind::not_found, "there is no model '" + std::string(id) + "'", "model"});
  }
  return nullptr;
}

std::unique_ptr<connection::http_call> api_service::post(exchange& x) {
  const std::string_view path = x.head.path;
  if (path == "/tokenize" || path == "/detokenize")
    return std::make_unique<tokenize_call>(path == "/tokenize", x.name, std::move(x.headers), context_, post_,
                                           std::move(x.out));
  if (contains(embedding_paths, path)) {
    x.refuse({error_kind::unsupported, "this server makes no embeddings", ""});
    return nullptr;
  }
  if (context_->draining) {
    x.refuse({error_kind::unavailable, "the server is shutting down", ""});
    return nullptr;
  }
  call_origin origin;
  origin.shape = find_generation(path)->shape;
  origin.route = path;
  origin.request_name = x.name;
  origin.client = x.head.remote_address;
  origin.headers = std::move(x.headers);
  origin.authenticated = x.authenticated;
  origin.received = context_->time->now();
  return std::make_unique<generation_call>(std::move(origin), context_, hub_, post_, std::move(x.out));
}

}  // namespace skein::request
