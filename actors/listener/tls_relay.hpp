#pragma once
#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>

#include "actors/connection/connection_set.hpp"
#include "actors/listener/tls_door.hpp"

namespace skein::listener {

/// Ends TLS on `socket`: what the client sends comes out of the socket that this returns, and what is written there
/// goes to the client. So a connection knows nothing of TLS; all its deadlines, the one for its header over the
/// handshake too, hold as they are, and closing its end closes the client's. A slow client fills two sockets in place
/// of one. Runs on the io thread of `context`, and ends by itself; nothing where the system has no descriptors left.
[[nodiscard]] std::optional<connection::stream_socket> relay_tls(boost::asio::io_context& context,
                                                                 connection::stream_socket socket,
                                                                 std::shared_ptr<boost::asio::ssl::context> with);

}  // namespace skein::listener
