#include "actors/supervisor/front_service.hpp"

#include <utility>

#include "actors/request/health.hpp"
#include "actors/request/page_route.hpp"
#include "protocol/http_error.hpp"

namespace skein::supervisor {
namespace {

request::probe answer_while_loading(const connection::request_head& head, const request::service_context& context) {
  const bool reads = head.method == "GET" || head.method == "HEAD";
  if (reads && head.path == "/livez") return request::live(context);
  if (reads && head.path == "/readyz") return request::ready(context);
  if (reads && (head.path == "/health" || head.path == "/v1/health")) return request::health(context);
  return {503, protocol::error_body(503, "the model is loading")};
}

}  // namespace

std::unique_ptr<connection::http_call> front_service::accept(const connection::request_head& head,
                                                             std::shared_ptr<connection::response_writer> out) {
  if (behind_) return behind_->accept(head, std::move(out));
  const bool reads = head.method == "GET" || head.method == "HEAD";
  if (reads && loading_->settings.web_page && request::answer_page(head, *out)) return nullptr;
  request::probe answer = answer_while_loading(head, *loading_);
  connection::header_list headers{{"Content-Type", "application/json"}};
  if (answer.status == 503) headers.emplace_back("Retry-After", "1");
  out->respond(answer.status, std::move(headers), std::move(answer.body));
  return nullptr;
}

std::string front_service::error_body(unsigned status, std::string_view message) {
  return protocol::error_body(status, message);
}

}  // namespace skein::supervisor
