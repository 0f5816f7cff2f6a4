#pragma once
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "actors/connection/connection_set.hpp"
#include "actors/connection/http_response.hpp"
#include "actors/connection/link/client_link.hpp"
#include "actors/connection/websocket/socket_frames.hpp"

namespace skein::connection {

/// An exchange that became a WebSocket: passes messages to its call, answers control frames, and asks an idle client
/// for a sign of life.
class socket_session {
 public:
  /// `link` and `home` outlive this; `call` is used until the link is closed.
  socket_session(client_link& link, const connection_set& home, http_call& call, std::shared_ptr<http_response> out,
                 std::uint64_t connection_number);

  /// How it ended, for http_call::gone.
  struct ending {
    std::string why;
    bool is_cut;  ///< the connection ends with a reset, without a close handshake
  };
  /// Reads frames until the close handshake is complete or the client is gone. Stops reading from a client that does
  /// not read, so that pongs do not accumulate.
  [[nodiscard]] boost::asio::awaitable<ending> serve();

 private:
  [[nodiscard]] bool hear(socket_event event);
  [[nodiscard]] bool is_open() const { return out_->is(response_phase::socket); }
  void expect_sign_of_life();

  client_link& link_;
  const connection_set& home_;
  http_call& call_;
  const std::shared_ptr<http_response> out_;
  const std::uint64_t connection_number_;
  frame_reader frames_;
  bool asked_ = false;  ///< a ping was sent
  std::string why_;     ///< it ended
};

}  // namespace skein::connection
