#pragma once
#include <span>
#include <string>
#include <string_view>

#include "actors/connection/http/http.hpp"
#include "base/error.hpp"

namespace skein::request {

/// Protection against web pages that use a visitor's browser to reach this server. Browsers name the page of a request
/// in `Origin` (Fetch standard, 3.1), or at least its distance in `Sec-Fetch-Site` (Fetch Metadata, 2.3); a page cannot
/// forge either. Clients that are no browsers send neither.

/// Whether a page of another origin sent this request: `Origin` is present and is neither this server's own (the same
/// host and port as `Host`, over HTTP or HTTPS) nor in `origins` ("*" lists every origin), or `Origin` is absent and
/// `Sec-Fetch-Site` is neither `same-origin` nor `none`.
[[nodiscard]] bool is_from_foreign_page(const connection::request_head& head, std::span<const std::string> origins);

/// Whether `Host` names this server: a loopback name (`localhost` and names below it), an IP address, or one of
/// `names`, each with any port. A request over a unix socket and one of HTTP/1.0 without `Host` pass. A name that an
/// attacker's DNS resolves to this machine (DNS rebinding) does not.
[[nodiscard]] bool is_addressed_here(const connection::request_head& head, std::span<const std::string> names);

/// The refusals, both 403. The gate lets only harmless characters into `Host`, so the message may repeat it.
[[nodiscard]] error foreign_page();
[[nodiscard]] error foreign_host(const connection::request_head& head);

}  // namespace skein::request
