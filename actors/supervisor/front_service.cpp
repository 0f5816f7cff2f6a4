#include "actors/supervisor/front_service.hpp"

#include <utility>

#include "actors/request/answer_start.hpp"
#include "actors/request/auth.hpp"
#include "actors/request/health.hpp"
#include "actors/request/metrics_page.hpp"
#include "actors/request/page_route.hpp"
#include "protocol/http_error.hpp"

namespace skein::supervisor {
namespace {

using connection::header_list;
using connection::request_head;
using protocol::http_error;

constexpr auto openai = protocol::error_style::openai;

request::probe answer_while_loading(const request_head& head, const request::service_context& context) {
  const bool reads = head.method == "GET" || head.method == "HEAD";
  if (reads && head.path == "/livez") return request::live(context);
  if (reads && head.path == "/readyz") return request::ready(context);
  if (reads && (head.path == "/health" || head.path == "/v1/health")) return request::health(context);
  return {503, protocol::error_body(503, "the model is loading")};
}

/// Why not, if so.
std::optional<http_error> may_not_read_metrics(const request_head& head, const request::service_context& context) {
  if (!context.guarded() || context.settings.open_metrics) return std::nullopt;
  const request::login tried = request::log_in(head, context, openai);
  if (tried.refusal) return tried.refusal;
  if (tried.who && tried.who->admin) return std::nullopt;
  return protocol::to_http(tried.who ? request::no_admin() : request::no_password(), std::chrono::seconds(1), openai);
}

}  // namespace

std::unique_ptr<connection::http_call> front_service::accept(const request_head& head,
                                                             std::shared_ptr<connection::response_writer> out) {
  if (behind_) return behind_->accept(head, std::move(out));
  const bool reads = head.method == "GET" || head.method == "HEAD";
  if (reads && loading_->settings.web_page && request::answer_page(head, *out)) return nullptr;
  header_list headers = request::start_answer(head, *loading_).headers;
  if (head.method == "OPTIONS") {
    out->respond(204, std::move(headers), "");
  } else if (head.path == "/metrics" && reads) {
    tell_metrics(head, std::move(headers), *out);
  } else {
    request::probe answer = answer_while_loading(head, *loading_);
    headers.emplace_back("Content-Type", "application/json");
    if (answer.status == 503) headers.emplace_back("Retry-After", "1");
    out->respond(answer.status, std::move(headers), std::move(answer.body));
  }
  return nullptr;
}

void front_service::tell_metrics(const request_head& head, header_list headers, connection::response_writer& out) {
  if (const auto no = may_not_read_metrics(head, *loading_)) {
    headers.emplace_back("Content-Type", "application/json");
    headers.insert(headers.end(), no->headers.begin(), no->headers.end());
    return out.respond(no->status, std::move(headers), no->body);
  }
  const auto dialect = metrics::exposition::chosen(head.field("accept"));
  headers.emplace_back("Content-Type", metrics::exposition::content_type(dialect));
  out.respond(200, std::move(headers), request::metrics_page(*loading_, dialect));
}

header_list front_service::refusal_headers(const header_list& fields) {
  return request::start_answer(fields, *loading_).headers;
}

std::string front_service::error_body(unsigned status, std::string_view message) {
  return protocol::error_body(status, message);
}

}  // namespace skein::supervisor
