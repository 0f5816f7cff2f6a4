#include "actors/request/service/browser_guard.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>

namespace skein::request {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  return out;
}

/// Host and port of an `Origin`, without the scheme's default port; empty: it is no HTTP origin ("null" included).
std::string authority_of(std::string_view origin) {
  for (const auto& [scheme, port] : {std::pair("http://", ":80"), std::pair("https://", ":443")}) {
    if (!origin.starts_with(scheme)) continue;
    origin.remove_prefix(std::string_view(scheme).size());
    if (origin.ends_with(port)) origin.remove_suffix(std::string_view(port).size());
    return lower(origin);
  }
  return {};
}

bool is_own(std::string_view origin, std::string_view host) {
  const std::string authority = authority_of(origin);
  if (authority.empty()) return false;
  const std::string here = lower(host);
  return authority == here || authority + ":80" == here || authority + ":443" == here;
}

/// Takes the port away: "[::1]:80" becomes "::1".
std::string_view name_of(std::string_view host) {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    return end == std::string_view::npos ? std::string_view() : host.substr(1, end - 1);
  }
  return host.substr(0, host.find(':'));
}

bool is_address(const std::string& name) {
  in6_addr any{};
  return inet_pton(AF_INET, name.c_str(), &any) == 1 || inet_pton(AF_INET6, name.c_str(), &any) == 1;
}

}  // namespace

bool is_from_foreign_page(const connection::request_head& head, std::span<const std::string> origins) {
  const bool any = std::ranges::find(origins, "*") != origins.end();
  const std::string_view origin = head.field("origin");
  if (!origin.empty())
    return !any && !is_own(origin, head.field("host")) && std::ranges::find(origins, origin) == origins.end();
  const std::string_view site = head.field("sec-fetch-site");
  return !any && !site.empty() && site != "same-origin" && site != "none";
}

bool is_addressed_here(const connection::request_head& head, std::span<const std::string> names) {
  const std::string_view host = head.field("host");
  if (head.unix_socket || host.empty()) return true;
  std::string name = lower(name_of(host));
  if (name.ends_with('.')) name.pop_back();
  return name == "localhost" || name.ends_with(".localhost") || is_address(name) ||
         std::ranges::any_of(names, [&](const std::string& n) { return lower(n) == name; });
}

error foreign_page() {
  return {error_kind::forbidden,
          "pages of other origins may not use this server without a key or password in a header; server.cors_origins "
          "lists the origins that may",
          ""};
}

error foreign_host(const connection::request_head& head) {
  return {error_kind::forbidden,
          "Host: \"" + std::string(head.field("host")) +
              "\" is not a name of this server; without a password it accepts localhost, IP addresses and the names in "
              "server.host_names",
          ""};
}

}  // namespace skein::request
