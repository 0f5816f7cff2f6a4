#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "actors/connection/http/http.hpp"
#include "actors/request/responses/response_runs.hpp"

namespace skein::request {

/// A WebSocket of the Responses API. Each `response.create` message is one exchange, like a POST, whose events are sent
/// as messages. Several run concurrently. Other routes are independent of sockets, and this class is independent of
/// answers.
class response_socket final : public connection::http_call {
 public:
  /// Creates the call that answers one message; null if it was refused through the writer.
  using start = std::function<std::unique_ptr<connection::http_call>(std::shared_ptr<connection::response_writer> out)>;

  /// Whether the secret that opened the socket is still valid; called for each message.
  using doorkeeper = std::function<bool()>;

  response_socket(start begin, doorkeeper admits, std::shared_ptr<const service_context> context, poster post,
                  std::shared_ptr<connection::response_writer> out);

  void body(std::string) override {}
  void message(std::string text) override;
  void writable() override;
  void leave() override;
  void gone(std::string_view why, unsigned status) override;

 private:
  /// The writer of one exchange: events become messages.
  class output;
  struct exchange {
    std::shared_ptr<output> out;
    std::unique_ptr<connection::http_call> call;
  };
  void create(std::string text);
  void cancel(const std::string& id);
  void over(std::uint64_t number);
  void refuse(const error& why);

  const start begin_;
  const doorkeeper admits_;
  std::shared_ptr<const service_context> context_;
  poster post_;
  std::shared_ptr<connection::response_writer> out_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, exchange> running_;
  std::shared_ptr<response_socket*> self_ = std::make_shared<response_socket*>(this);  // for late results
};

}  // namespace skein::request
