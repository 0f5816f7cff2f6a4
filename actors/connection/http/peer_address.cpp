#include "actors/connection/http/peer_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace skein::connection {
namespace {

// A client that a proxy does not name in a known form. Counted separately from the proxy's other clients.
constexpr const char* unknown_client = "unknown";

std::string written(const in6_addr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (IN6_IS_ADDR_V4MAPPED(&address))
    inet_ntop(AF_INET, &address.s6_addr[12], text.data(), text.size());
  else
    inet_ntop(AF_INET6, &address, text.data(), text.size());
  return text.data();
}

/// The canonical form of an address, or nullopt if the text is not an address.
std::optional<std::string> normalised(std::string_view text) {
  std::string copy(text);
  in6_addr six{};
  if (inet_pton(AF_INET6, copy.c_str(), &six) == 1) return written(six);
  in_addr four{};
  if (inet_pton(AF_INET, copy.c_str(), &four) == 1) return copy;
  return std::nullopt;
}

/// An entry of X-Forwarded-For: an address, optionally with a port; an IPv6 address with a port has brackets.
std::optional<std::string> forwarded_address(std::string_view item) {
  constexpr std::string_view blank = " \t";
  item.remove_prefix(std::min(item.find_first_not_of(blank), item.size()));
  item = item.substr(0, item.find_last_not_of(blank) + 1);
  const bool bracketed = item.starts_with('[');
  const std::size_t close = bracketed ? item.find(']') : std::string_view::npos;
  if (bracketed && close == std::string_view::npos) return std::nullopt;
  std::size_t colon = bracketed ? close + 1 : item.find(':');
  if (!bracketed && colon != item.rfind(':')) colon = item.size();  // IPv6
  const std::string_view port = item.substr(std::min(colon, item.size()));
  const bool is_port = port.size() > 1 && port.size() <= 6 && port[0] == ':' &&
                       std::all_of(port.begin() + 1, port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!port.empty() && !is_port) return std::nullopt;
  return normalised(bracketed ? item.substr(1, close - 1) : item.substr(0, colon));
}

bool listed(const std::vector<std::string>& addresses, const std::string& address) {
  return std::any_of(addresses.begin(), addresses.end(),
                     [&](const std::string& a) { return normalised(a).value_or(a) == address; });
}

}  // namespace

peer_address describe_peer(const sockaddr* address, socklen_t size, const std::vector<std::string>& trusted_proxies) {
  peer_address peer{.text = "unix", .loopback = true, .unix_socket = address->sa_family == AF_UNIX};
  if (address->sa_family == AF_INET && size >= sizeof(sockaddr_in)) {
    sockaddr_in four{};
    std::memcpy(&four, address, sizeof(four));
    std::array<char, INET_ADDRSTRLEN> text{};
    inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
    peer.text = text.data();
    peer.loopback = peer.text.starts_with("127.");
  } else if (address->sa_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
    sockaddr_in6 six{};
    std::memcpy(&six, address, sizeof(six));
    peer.text = written(six.sin6_addr);
    peer.loopback = peer.text == "::1" || peer.text.starts_with("127.");
  }
  peer.trusted = listed(trusted_proxies, peer.text);
  return peer;
}

void name_user(peer_address& peer, int fd) {
  ucred user{};
  socklen_t size = sizeof user;
  if (peer.unix_socket && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size) == 0)
    peer.text += ':' + std::to_string(user.uid);
}

std::string client_address(const peer_address& peer, const header_list& fields,
                           const std::vector<std::string>& trusted_proxies) {
  if (!peer.trusted) return peer.text;
  std::string chain;
  for (const auto& [name, value] : fields)
    if (name == "x-forwarded-for") chain += (chain.empty() ? "" : ",") + value;

  std::string client = peer.text;
  while (!chain.empty()) {
    const std::size_t comma = chain.rfind(',');
    const auto address = forwarded_address(std::string_view(chain).substr(comma == std::string::npos ? 0 : comma + 1));
    if (!address) return unknown_client;
    client = *address;
    if (!listed(trusted_proxies, client) || comma == std::string::npos) break;
    chain.resize(comma);
  }
  return client;
}

}  // namespace skein::connection
