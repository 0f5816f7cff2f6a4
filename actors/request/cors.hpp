#pragma once
#include <span>
#include <string>

#include "actors/connection/http.hpp"

namespace skein::request {

/// The CORS headers of a response to a browser at `origin`: none for other clients, for the server's own pages, and for
/// origins that nobody listed. "*" among the origins allows all; so does a password, since a page then needs the key
/// and no cookie is ever used.
[[nodiscard]] connection::header_list cors_headers(const connection::request_head& head,
                                                   std::span<const std::string> origins, bool has_password);

/// The further headers of the answer to a preflight (OPTIONS).
[[nodiscard]] connection::header_list preflight_headers(const connection::request_head& head);

/// Whether a page may open a WebSocket here: one of ours, one of the list, or what is no page. Browsers ask nobody
/// before they open one, and send it whatever the user of the page is known by.
[[nodiscard]] bool may_open_socket(const connection::request_head& head, std::span<const std::string> origins);

}  // namespace skein::request
