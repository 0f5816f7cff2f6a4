#pragma once
#include <memory>
#include <string>

#include "actors/connection/http.hpp"
#include "actors/request/service_context.hpp"

namespace skein::supervisor {

/// What answers on one io thread from the moment the server listens: while the model loads, the probes say so, /metrics
/// has what there is, and all else is a 503 that asks to come back; once opened, the service behind it answers
/// everything. Lives on its io thread.
class front_service final : public connection::http_service {
 public:
  /// `loading` is a context that is not ready and has no model; the probes read it.
  explicit front_service(std::shared_ptr<const request::service_context> loading) : loading_(std::move(loading)) {}

  /// From now on `service` answers; it outlives every request.
  void open(connection::http_service& service) { behind_ = &service; }

  std::unique_ptr<connection::http_call> accept(const connection::request_head& head,
                                                std::shared_ptr<connection::response_writer> out) override;
  connection::header_list refusal_headers(const connection::header_list& fields) override;
  std::string error_body(unsigned status, std::string_view message) override;

 private:
  void tell_metrics(const connection::request_head& head, connection::header_list headers,
                    connection::response_writer& out);

  std::shared_ptr<const request::service_context> loading_;
  connection::http_service* behind_ = nullptr;
};

}  // namespace skein::supervisor
