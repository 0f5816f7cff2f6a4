#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "actors/connection/http/http.hpp"
#include "actors/request/service/api_service.hpp"

namespace skein::supervisor {

/// Answers requests on one io thread from the moment the server listens. While the first model loads, a separate
/// service serves the routes marked for that in the route table and answers 503 to the others. After open(), another
/// service answers everything. Used only on its io thread.
class front_service final : public connection::http_service {
 public:
  /// `loading` is a context without a model, with its flag `loading` set.
  front_service(std::shared_ptr<const request::service_context> loading, std::uint32_t io_thread,
                std::function<void(std::function<void()>)> post)
      : hub_(io_thread), early_(std::move(loading), hub_, std::move(post)) {}

  /// Forwards all further requests to `service`, which must outlive them.
  void open(connection::http_service& service) { behind_ = &service; }

  std::unique_ptr<connection::http_call> accept(const connection::request_head& head,
                                                std::shared_ptr<connection::response_writer> out) override {
    return behind_->accept(head, std::move(out));
  }
  connection::header_list refusal_headers(const connection::header_list& fields) override {
    return behind_->refusal_headers(fields);
  }
  std::string error_body(unsigned status, std::string_view message, std::string_view target) override {
    return behind_->error_body(status, message, target);
  }

 private:
  request::request_hub hub_;
  request::api_service early_;
  connection::http_service* behind_ = &early_;
};

}  // namespace skein::supervisor
