#pragma once
#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>

#include "actors/connection/connection_set.hpp"
#include "actors/listener/tls_door.hpp"

namespace skein::listener {

/// Terminates TLS on `socket`: returns a socket that carries the decrypted stream in both directions. So a connection
/// does not deal with TLS; its deadlines apply unchanged, with the handshake under the header deadline, and closing its
/// end closes the client's. A slow client fills two sockets instead of one. Runs on the io thread of `context` and ends
/// by itself. Returns nullopt if the system has no descriptors or memory left.
[[nodiscard]] std::optional<connection::stream_socket> relay_tls(boost::asio::io_context& context,
                                                                 connection::stream_socket socket,
                                                                 std::shared_ptr<boost::asio::ssl::context> with);

}  // namespace skein::listener
