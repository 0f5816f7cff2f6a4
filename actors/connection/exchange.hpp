#pragma once
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "actors/connection/connection.hpp"
#include "base/log/log.hpp"

/// Shared only by the sources of connection.
namespace skein::connection {

struct connection::exchange {
  enum class answer { none, streaming, complete };
  /// State of an exchange that became a WebSocket.
  enum class socket { none, open, closing };

  std::unique_ptr<http_call> call;
  std::shared_ptr<writer> out;
  bool bodiless = false;  ///< the response to HEAD, or one whose status allows no body
  bool http_1_0 = false;
  bool chunked = false;      ///< the streamed response is chunked
  bool keep_alive = false;   ///< the connection may serve another request after this one
  bool body_unread = false;  ///< part of the request body may still arrive
  bool cut = false;          ///< the connection ends as soon as the service returns
  bool choked = false;       ///< the queue has been above its limit and writable() must be called
  bool starved = false;      ///< the same for lack of memory, until the queue falls to fed_below
  std::size_t fed_below = 0;
  std::uint32_t deaf_writes = 0;  ///< writes of the service since `choked` was set
  answer progress = answer::none;
  socket upgraded = socket::none;
  std::string socket_key;  ///< Sec-WebSocket-Key
};

class connection::writer final : public response_writer {
 public:
  explicit writer(connection* owner) : owner_(owner) {}
  void detach() { owner_ = nullptr; }

  void respond(unsigned status, header_list headers, std::string body) override {
    if (owner_) owner_->respond(status, headers, std::move(body));
  }
  void begin_stream(unsigned status, header_list headers) override {
    if (owner_) owner_->begin_stream(status, headers);
  }
  void write(std::string bytes) override {
    if (owner_) owner_->write(std::move(bytes));
  }
  void end() override {
    if (owner_) owner_->end_stream();
  }
  void upgrade(header_list headers) override {
    if (owner_) owner_->upgrade(std::move(headers));
  }
  void send(std::string_view message) override {
    if (owner_) owner_->send(message);
  }
  void close(std::uint16_t code, std::string_view reason) override {
    if (owner_) owner_->close_socket(code, reason);
  }
  void abort() override {
    if (owner_) owner_->post_cut("aborted");
  }
  void charge(byte_share share) override {
    if (owner_) owner_->charge(share);
  }
  [[nodiscard]] byte_share::outcome reserve(std::size_t bytes) override {
    return owner_ ? owner_->reserve(bytes) : byte_share::outcome::taken;
  }
  [[nodiscard]] std::size_t queued_bytes() const override { return owner_ ? owner_->queued_bytes() : 0; }

 private:
  connection* owner_;  ///< detached at the end of the exchange, before the connection dies
};

/// Runs a call into the service; false if it threw.
template <typename Function>
bool connection::calls(Function&& into_service) {
  try {
    into_service();
    return true;
  } catch (const std::exception& e) {
    log::error("a request handler failed", {{"what", e.what()}, {"connection", number_}});
    return false;
  }
}

}  // namespace skein::connection
