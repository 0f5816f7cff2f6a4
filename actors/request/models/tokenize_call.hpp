#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "actors/connection/http/http.hpp"
#include "actors/request/call/plain_call.hpp"
#include "actors/request/shared/service_context.hpp"

namespace skein::request {

enum class text_task : std::uint8_t { tokenize, detokenize, count, apply_template };

/// POST /tokenize, /detokenize, /apply-template and /v1/tokens/count. Short bodies are answered at once; long ones by
/// the worker pool, whose answer is dropped if the client has left.
class tokenize_call final : public connection::http_call {
 public:
  tokenize_call(text_task task, plain_origin origin, std::shared_ptr<const service_context> context,
                std::function<void(std::function<void()>)> post, std::shared_ptr<connection::response_writer> out);

  [[nodiscard]] std::uint64_t body_bytes_max() const override;
  [[nodiscard]] connection::header_list headers() const override { return origin_.headers; }
  [[nodiscard]] std::string error_body(unsigned status, std::string_view message) const override;
  void body(std::string bytes) override;
  void writable() override {}
  void gone(std::string_view, unsigned) override { over_.request_stop(); }

 private:
  const text_task task_;
  plain_origin origin_;
  std::shared_ptr<const service_context> context_;
  std::function<void(std::function<void()>)> post_;
  std::shared_ptr<connection::response_writer> out_;
  std::stop_source over_;  ///< requested when the client is gone, to stop its work
};

}  // namespace skein::request
