#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/byte_share.hpp"
#include "base/clock.hpp"
#include "config/config.hpp"

/// The interface between a connection, which handles HTTP/1.1 and uses Beast, and the service that answers requests,
/// which depends on neither. All calls happen on the io thread of the connection and are never re-entrant: a connection
/// calls http_call from its own handlers, and response_writer functions only queue.
namespace skein::connection {

/// Logged as the status if the client has gone before it could get one.
inline constexpr unsigned client_gone = 499;

using header_list = std::vector<std::pair<std::string, std::string>>;

/// A request at the end of its header. Never contains trailers.
struct request_head {
  std::string method;          ///< as sent; the gate lets only known methods pass
  std::string path;            ///< decoded path without query, e.g. "/v1/models/demo"
  std::string raw_path;        ///< as sent, still escaped
  std::string query;           ///< raw, without '?'
  header_list fields;          ///< in order, names in lower case
  std::string remote_address;  ///< "127.0.0.1"; the forwarded one if the peer is a trusted proxy
  bool loopback = false;       ///< the peer itself
  bool unix_socket = false;    ///< the same for a unix socket
  bool admin = false;          ///< received on the admin socket; has all rights
  std::uint64_t connection_number = 0;
  steady_time received{};

  /// The value of the first field with that lower-case name, or empty.
  [[nodiscard]] std::string_view field(std::string_view name) const {
    for (const auto& [n, v] : fields)
      if (n == name) return v;
    return {};
  }
};

/// The response side of one exchange. Functions queue bytes and return at once; they are no-ops after the client has
/// gone. The connection adds only Date, Content-Length or chunked framing, and Connection.
class response_writer {
 public:
  virtual ~response_writer() = default;
  /// A whole response. Once per exchange, and not with begin_stream.
  virtual void respond(unsigned status, header_list headers, std::string body) = 0;
  /// Status and headers of a streamed response; then write() any number of times, then end().
  virtual void begin_stream(unsigned status, header_list headers) = 0;
  virtual void write(std::string bytes) = 0;
  virtual void end() = 0;
  /// Instead of a response: the exchange becomes a WebSocket, with these headers in addition to those of the handshake.
  /// It then uses http_call::message, send() and close() until it ends.
  virtual void upgrade(header_list /*headers*/) {}
  virtual void send(std::string_view /*message*/) {}
  /// Sends a close frame with that code; no further message arrives.
  virtual void close(std::uint16_t /*code*/, std::string_view /*reason*/) {}
  /// Resets the connection (a stream that failed after its status was sent).
  virtual void abort() = 0;
  /// Sets the share that is charged for the exchange's body and response from now on.
  virtual void charge(byte_share /*share*/) {}
  /// Reserves memory for a body that will be passed to respond(); if there is none, the service must respond with a
  /// smaller one.
  [[nodiscard]] virtual byte_share::outcome reserve(std::size_t /*bytes*/) { return byte_share::outcome::taken; }
  /// Bytes queued and not yet taken by the socket. If they exceed limits.outbound_bytes_max, the caller pauses and
  /// waits for http_call::writable. If memory is short, returns a value above that limit.
  [[nodiscard]] virtual std::size_t queued_bytes() const = 0;
  /// Whether http_call::writable will follow: the queue rose above that limit, or memory is short.
  [[nodiscard]] virtual bool is_full() const { return false; }
};

/// One exchange on the service side, created by http_service::accept, owned by the connection, destroyed after the
/// response is sent or after gone().
class http_call {
 public:
  virtual ~http_call() = default;
  /// Limit on the body of this call; larger ones are refused with 413, even if the connection allows them. For requests
  /// whose credentials may be in the body.
  [[nodiscard]] virtual std::uint64_t body_bytes_max() const { return std::numeric_limits<std::uint64_t>::max(); }
  /// Headers of every response of this exchange, including one that the connection sends in place of the service.
  [[nodiscard]] virtual header_list headers() const { return {}; }
  /// The body of a refusal that the connection sends in place of this call; empty: that of http_service::error_body.
  [[nodiscard]] virtual std::string error_body(unsigned /*status*/, std::string_view /*message*/) const { return {}; }
  /// The whole body, once. Empty for requests without one.
  virtual void body(std::string bytes) = 0;
  /// A message of a WebSocket; there is no body then.
  virtual void message(std::string /*text*/) {}
  /// The server is shutting down: a WebSocket should close as soon as it can. May be called more than once.
  virtual void leave() {}
  /// The queue fell below half of outbound_bytes_max after being above it.
  virtual void writable() = 0;
  /// The client hung up, stalled beyond its limit, or the server cuts the connection (`status` is client_gone); or the
  /// connection refused the body (`status` is the one sent to the client). No other call follows.
  virtual void gone(std::string_view why, unsigned status) = 0;
};

/// Answers requests on one io thread.
class http_service {
 public:
  virtual ~http_service() = default;
  /// Called after the header has passed the gate, before any of the body is read. A service that refuses here (401,
  /// 404, 405, 429, 503) calls out->respond and returns nullptr: the body is then not read and the connection closes
  /// after the response if a body was announced.
  [[nodiscard]] virtual std::unique_ptr<http_call> accept(const request_head& head,
                                                          std::shared_ptr<response_writer> out) = 0;
  /// Headers of a refusal by the connection itself if no exchange has begun; `fields` are those of the request, as far
  /// as they could be read.
  [[nodiscard]] virtual header_list refusal_headers(const header_list& /*fields*/) { return {}; }
  /// The body for a refusal by the connection itself (400 framing, 408, 413, 414, 415, 417, 431, 501, 503), as JSON.
  /// `target` is the request's as sent, empty if it could not be read.
  [[nodiscard]] virtual std::string error_body(unsigned status, std::string_view message, std::string_view target) = 0;
};

/// Limits of connections, and the settings beside them that connections need.
struct connection_limits : config::limit_settings {
  std::uint64_t upload_bytes_max = config::session_settings{}.file_bytes_max;  ///< of the body of a PUT: a file
  std::vector<std::string> trusted_proxies = {};  ///< addresses whose X-Forwarded-For is used
};

}  // namespace skein::connection
