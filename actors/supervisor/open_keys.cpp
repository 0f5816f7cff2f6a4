#include "actors/supervisor/open_keys.hpp"

#include "cli/small_file.hpp"
#include "config/rules.hpp"

namespace skein::supervisor {

result<std::vector<access::api_key>> open_keys(const config::config& c) {
  const auto& s = c.server;
  std::vector<access::api_key> keys;
  if (!s.keys_file.empty()) {
    const auto text = cli::read_small_file(s.keys_file);
    if (!text) return error{text.error().kind, "server.keys_file: " + text.error().message, "server.keys_file"};
    auto read = access::parse_keys(*text, s.keys_file);
    if (!read) return read.error();
    keys = std::move(*read);
  }
  if (keys.empty() && s.password.empty() && !config::is_loopback(s.host) && !s.allow_unauthenticated)
    return error{error_kind::bad_config, s.keys_file + " holds no key, and the server listens beyond loopback",
                 "server.keys_file"};
  return keys;
}

}  // namespace skein::supervisor
