#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "actors/connection/http.hpp"
#include "actors/request/generation_call.hpp"
#include "actors/request/request_hub.hpp"
#include "actors/request/service_context.hpp"

namespace skein::request {

/// All routes, on one io thread. Whatever can be refused without the body is refused here: unknown routes and methods,
/// wrong credentials, a server that is draining.
class api_service final : public connection::http_service {
 public:
  api_service(std::shared_ptr<const service_context> context, request_hub& hub,
              std::function<void(std::function<void()>)> post);

  std::unique_ptr<connection::http_call> accept(const connection::request_head& head,
                                                std::shared_ptr<connection::response_writer> out) override;
  std::string error_body(unsigned status, std::string_view message) override;

 private:
  struct exchange;
  std::unique_ptr<connection::http_call> route(exchange& x);
  std::unique_ptr<connection::http_call> get(exchange& x);
  std::unique_ptr<connection::http_call> post(exchange& x);

  std::shared_ptr<const service_context> context_;
  request_hub& hub_;
  std::function<void(std::function<void()>)> post_;
};

}  // namespace skein::request
