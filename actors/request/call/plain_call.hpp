#pragma once
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "actors/connection/http/http.hpp"
#include "actors/request/shared/service_context.hpp"
#include "protocol/json/http_error.hpp"

namespace skein::request {

/// The HTTP request of a call.
struct plain_origin {
  std::string request_name;         ///< X-Request-Id
  std::string client;               ///< address, for counting wrong passwords
  connection::header_list headers;  ///< that every response of this exchange carries
  bool authenticated = true;        ///< false: the body must bring the password
  bool needs_admin = false;         ///< the caller must have the admin right
  caller_ref who = anybody();       ///< once it is known
  protocol::error_style errors = protocol::error_style::openai;
  byte_share share{};  ///< of the memory budget
};

/// A call with one request body and one answer: reads the body, checks the password in it, and answers once. An
/// exception ends it with a 500.
class plain_call : public connection::http_call {
 public:
  plain_call(plain_origin origin, std::shared_ptr<const service_context> context,
             std::shared_ptr<connection::response_writer> out);

  [[nodiscard]] std::uint64_t body_bytes_max() const override;
  [[nodiscard]] connection::header_list headers() const override { return origin_.headers; }
  [[nodiscard]] std::string error_body(unsigned status, std::string_view message) const override;
  void body(std::string bytes) final;
  void writable() override {}
  void gone(std::string_view, unsigned) override { end(); }

 protected:
  /// Handles the body of an authorized caller; the password in it is checked already. Answers now or later.
  virtual void read(std::string body) = 0;

  void guarded(const std::function<void()>& work);
  void answer(unsigned status, std::string body, std::string_view type = "application/json");
  void refuse(const error& why, std::chrono::seconds retry_after = std::chrono::seconds(1));
  [[nodiscard]] bool ended() const { return over_.stop_requested(); }
  [[nodiscard]] const service_context& context() const { return *context_; }
  [[nodiscard]] const std::shared_ptr<const service_context>& shared_context() const { return context_; }
  [[nodiscard]] const plain_origin& origin() const { return origin_; }
  [[nodiscard]] std::stop_token over() const { return over_.get_token(); }
  /// The lease of the body, for the object that keeps the body from here on.
  [[nodiscard]] byte_budget::lease take_memory() { return std::exchange(memory_, nullptr); }

 private:
  void end() { over_.request_stop(); }

  plain_origin origin_;
  std::shared_ptr<const service_context> context_;
  std::shared_ptr<connection::response_writer> out_;
  std::stop_source over_;
  byte_budget::lease memory_;  // of the body
};

}  // namespace skein::request
