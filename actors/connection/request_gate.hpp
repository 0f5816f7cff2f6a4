#pragma once
#include "actors/connection/header_parser.hpp"
#include "actors/connection/http.hpp"
#include "actors/connection/refusal.hpp"

namespace skein::connection {

/// How the body of a request is delimited.
struct body_framing {
  bool chunked = false;
  bool upload = false;  ///< the body is a file, with a limit of its own
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

/// Decides whether a header is one that every party on the way reads alike. Whatever could make a proxy and this server
/// disagree on where a request ends is refused with 400, whatever the parser below made of it: any Transfer-Encoding
/// but a single "chunked", Transfer-Encoding beside Content-Length or in HTTP/1.0, Content-Length twice, as a list or
/// not in digits, a missing or second Host. Trailers never pass here: only this header counts.
/// A body with a Content-Encoding is refused with 415, on every route.
/// What is refused keeps its fields.
[[nodiscard]] accepted<admission> pass_gate(raw_header&& header, const connection_limits& limits);

}  // namespace skein::connection
