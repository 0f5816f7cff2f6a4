#include "config/rules.hpp"

#include <arpa/inet.h>
#include <sys/un.h>

namespace skein::config {
namespace {

bool is_address(const std::string& text) {
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, text.c_str(), bytes) == 1 || inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

bool is_named_file(const std::string& text) {
  const auto sign = text.find('=');
  return sign != 0 && sign != std::string::npos && sign + 1 < text.size();
}

void demand(loaded& merged, bool holds, const std::string& key, std::string message) {
  if (holds) return;
  const auto found = merged.origins.find(key);
  const origin from = found == merged.origins.end() ? origin{} : found->second;
  merged.faults.push_back({fault_kind::conflict, from, key, std::move(message)});
}

}  // namespace

bool is_loopback(std::string_view host) {
  if (host == "localhost" || host == "::1") return true;
  in_addr address{};
  return inet_pton(AF_INET, std::string(host).c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

bool asks_for_secret(const config& settings) {
  const auto& s = settings.server;
  return !s.password.empty() || !s.password_file.empty() || (!s.keys_file.empty() && !s.allow_unauthenticated);
}

void check_rules(loaded& merged) {
  const config& c = merged.settings;
  const bool guarded = !c.server.password.empty() || !c.server.password_file.empty() || !c.server.keys_file.empty();
  const bool known_host = is_address(c.server.host) || c.server.host == "localhost";
  demand(merged, known_host, "server.host", "\"" + c.server.host + "\" is neither an IP address nor localhost");
  demand(merged, !known_host || is_loopback(c.server.host) || guarded || c.server.allow_unauthenticated, "server.host",
         "is not a loopback address; set server.password_file (--password-file), server.keys_file (--keys-file) or, "
         "for a server open to everyone, server.allow_unauthenticated (--allow-unauthenticated)");
  demand(merged, c.server.password.empty() || c.server.password_file.empty(), "server.password_file",
         "is set in addition to server.password; set only one of them");
  demand(
      merged, c.server.tls_certificate.empty() == c.server.tls_key.empty(), "server.tls_key",
      c.server.tls_key.empty() ? "is missing: server.tls_certificate requires it" : "requires server.tls_certificate");
  // In a file the port may be ready for a certificate that a reload names.
  const auto tls_port = merged.origins.find("server.tls_port");
  const bool wants_tls = tls_port != merged.origins.end() && tls_port->second.kind == origin_kind::flag;
  demand(merged, !wants_tls || !c.server.tls_certificate.empty() || !c.server.tls_key.empty(), "server.tls_port",
         "requires server.tls_certificate (--tls-certificate) and server.tls_key (--tls-key)");
  constexpr std::size_t path_bytes_max = sizeof(sockaddr_un::sun_path) - 1;
  for (const auto& [key, path] : {std::pair{"server.unix_socket", &c.server.unix_socket},
                                  std::pair{"server.admin_socket", &c.server.admin_socket}})
    demand(merged, path->size() <= path_bytes_max, key,
           "is longer than " + std::to_string(path_bytes_max) + " bytes, the limit of a socket path");
  for (const auto& proxy : c.server.trusted_proxies)
    demand(merged, is_address(proxy) || proxy == "unix", "server.trusted_proxies",
           "\"" + proxy + "\" is neither an IP address nor unix");
  for (const auto& named : c.model.tuned_states)
    demand(merged, is_named_file(named), "model.tuned_states", "\"" + named + "\" is not NAME=FILE");
  demand(merged, c.model.tuned_states.empty() || !c.model.states_dir.empty(), "model.tuned_states",
         "requires model.states_dir, the folder of its files");
  demand(merged, c.limits.request_wire_bytes_max >= c.limits.body_bytes_max, "limits.request_wire_bytes_max",
         "is less than limits.body_bytes_max");
  demand(merged, c.limits.connections_per_address_max <= c.limits.connections_max, "limits.connections_per_address_max",
         "is greater than limits.connections_max");
  demand(merged, c.limits.prompts_max >= c.limits.n_max, "limits.prompts_max", "is less than limits.n_max");
  demand(merged, c.queue.queue_timeout_ms <= c.queue.total_timeout_ms, "queue.queue_timeout_ms",
         "is greater than queue.total_timeout_ms");
  demand(merged, c.engine.max_tick_tokens == 0 || c.engine.prefill_chunk_tokens <= c.engine.max_tick_tokens,
         "engine.prefill_chunk_tokens", "is greater than engine.max_tick_tokens");
}

}  // namespace skein::config
