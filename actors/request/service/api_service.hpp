#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/connection/http/http.hpp"
#include "actors/request/generation/generation_call.hpp"
#include "actors/request/models/model_call.hpp"
#include "actors/request/models/tokenize_call.hpp"
#include "actors/request/models/tuned_state_call.hpp"
#include "actors/request/responses/response_call.hpp"
#include "actors/request/responses/response_runs.hpp"
#include "actors/request/responses/response_socket.hpp"
#include "actors/request/sessions/session_routes.hpp"
#include "actors/request/shared/request_hub.hpp"
#include "actors/request/shared/service_context.hpp"
#include "actors/request/status/health.hpp"

namespace skein::request {

/// All routes, on one io thread. Everything that can be refused without the body is refused here: unknown routes and
/// methods, wrong credentials, a draining server. The table of paths is at the top of the .cpp file.
class api_service final : public connection::http_service {
 public:
  api_service(std::shared_ptr<const service_context> context, request_hub& hub,
              std::function<void(std::function<void()>)> post);

  /// Requests that arrive from now on get this context. Call it on the service's io thread.
  void use(std::shared_ptr<const service_context> context) { context_ = std::move(context); }

  std::unique_ptr<connection::http_call> accept(const connection::request_head& head,
                                                std::shared_ptr<connection::response_writer> out) override;
  connection::header_list refusal_headers(const connection::header_list& fields) override;
  std::string error_body(unsigned status, std::string_view message, std::string_view target) override;

 private:
  struct exchange;
  struct route;
  using made_call = std::unique_ptr<connection::http_call>;
  [[nodiscard]] static const std::vector<route>& routes();

  void watch(exchange& x);
  [[nodiscard]] bool is_addressed_here(const exchange& x) const;
  [[nodiscard]] bool may_ask_first(const exchange& x) const;
  [[nodiscard]] bool serves_foreign_pages(const exchange& x) const;
  [[nodiscard]] bool admit(exchange& x);
  void refuse_visitor(exchange& x);
  // Handlers: answer at once and return null, or return the call that will answer.
  [[nodiscard]] bool is_operator(const exchange& x) const;
  template <probe (*Probe)(const service_context&, audience)>
  made_call tell_probe(exchange& x);
  made_call tell_version(exchange& x);
  made_call tell_page(exchange& x);
  made_call tell_openapi(exchange& x);
  made_call tell_metrics(exchange& x);
  made_call tell_models(exchange& x);
  made_call tell_models_array(exchange& x);
  made_call tell_model(exchange& x);
  made_call refuse_embeddings(exchange& x);
  made_call refuse_states(exchange& x);
  made_call refuse_new_items(exchange& x);
  made_call refuse_item_removal(exchange& x);
  template <text_task Task>
  made_call tokenize(exchange& x);
  made_call generate(exchange& x);
  made_call respond(exchange& x);
  made_call open_socket(exchange& x);
  template <response_question::task What>
  made_call ask_response(exchange& x);
  made_call count_input(exchange& x);
  [[nodiscard]] call_origin origin_of(exchange& x) const;
  template <model_call::form Form>
  made_call change_model(exchange& x);
  template <session_question (*Question)(const session_routes::route_input&)>
  made_call ask_sessions(exchange& x);
  template <session_question (*Question)(const session_routes::route_input&)>
  made_call ask_tenant(exchange& x);
  made_call tell_status(exchange& x);
  template <order What>
  made_call control(exchange& x);
  template <tuned_state_call::task What>
  made_call change_states(exchange& x);

  std::shared_ptr<const service_context> context_;
  request_hub& hub_;
  std::function<void(std::function<void()>)> post_;
  response_runs responses_;
};

}  // namespace skein::request
