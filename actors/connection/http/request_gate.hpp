#pragma once
#include "actors/connection/http/header_parser.hpp"
#include "actors/connection/http/http.hpp"
#include "actors/connection/http/refusal.hpp"

namespace skein::connection {

/// How the body of a request is delimited.
struct body_framing {
  bool chunked = false;
  bool upload = false;  ///< the body is a file, which has a separate limit
  std::uint64_t content_length = 0;
  [[nodiscard]] bool has_body() const { return chunked || content_length > 0; }
};

/// A request that passed the gate.
struct admission {
  request_head head;  ///< method, path, query and fields; the connection adds the rest
  body_framing framing;
  bool http_1_0 = false;
  bool keep_alive = false;        ///< the client allows another request on this connection
  bool expects_continue = false;  ///< the client waits for "100 Continue" before it sends the body
};

/// Refuses headers that different parties may read differently. Anything that could make a proxy and this server
/// disagree on the end of a request gets 400, whatever the parser accepted: any Transfer-Encoding except a single
/// "chunked", Transfer-Encoding with Content-Length or in HTTP/1.0, a repeated Content-Length, one that is a list or
/// not a number, a missing or second Host. Trailers are never considered. A body with a Content-Encoding gets 415, on
/// every route. A refused header keeps its fields.
[[nodiscard]] accepted<admission> pass_gate(raw_header&& header, const connection_limits& limits);

}  // namespace skein::connection
