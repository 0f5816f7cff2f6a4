#pragma once
#include <span>
#include <string>

#include "actors/connection/http/http.hpp"

namespace skein::request {

/// The CORS headers of a response to a browser at `origin`: none for other clients, for the server's own pages, and for
/// unlisted origins. "*" among the origins allows all; so does a password, since a page then needs the key and no
/// cookie is ever used.
[[nodiscard]] connection::header_list cors_headers(const connection::request_head& head,
                                                   std::span<const std::string> origins, bool has_password);

/// The further headers of the answer to a preflight (OPTIONS).
[[nodiscard]] connection::header_list preflight_headers(const connection::request_head& head);

}  // namespace skein::request
