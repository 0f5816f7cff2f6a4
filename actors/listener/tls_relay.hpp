#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_set>

#include "actors/connection/connection_set.hpp"
#include "actors/listener/tls_door.hpp"

namespace skein::listener {

class tls_relay;

/// The decrypted side of a TLS connection.
struct plain_side {
  connection::stream_socket socket;
  std::function<void(connection::ending)> on_end;  ///< to be called once when `socket` has been closed
};

/// Terminates TLS for the connections of one io thread, on which every function runs: a relay copies between the
/// client's socket and a socket pair. So a connection does not deal with TLS; its deadlines apply unchanged, with the
/// handshake under the header deadline. A slow client fills two sockets instead of one.
///
/// A relay delivers what its connection has written before closing, as long as the client takes some of it within
/// write_timeout_ms. If the connection was cut, it gets a moment for that, and the client gets a reset.
class tls_relays {
 public:
  /// `home` has the limits of the connections.
  explicit tls_relays(std::shared_ptr<const connection::connection_set> home) : home_(std::move(home)) {}

  /// Opens a relay for a client's socket. `on_end` is called once on this thread, when connection and relay have ended,
  /// and keeps this object alive until then. Returns nullopt, after calling `on_end`, if the system has no descriptors
  /// or memory left.
  [[nodiscard]] std::optional<plain_side> open(boost::asio::io_context& context, connection::stream_socket client,
                                               std::shared_ptr<boost::asio::ssl::context> with,
                                               std::function<void(connection::ending)> on_end);
  /// Resets every client.
  void cut_all();

 private:
  friend class tls_relay;
  void forget(tls_relay* ended) { relays_.erase(ended); }

  std::shared_ptr<const connection::connection_set> home_;
  std::unordered_set<tls_relay*> relays_;
};

}  // namespace skein::listener
