#include "actors/supervisor/settings/open_keys.hpp"

#include "app/small_file.hpp"
#include "base/log/log.hpp"
#include "config/rules.hpp"

namespace skein::supervisor {

result<std::vector<access::api_key>> open_keys(const config::config& c) {
  const auto& s = c.server;
  for (const std::string& file : {s.keys_file, s.password_file, s.tls_key})
    if (const auto safe = cli::judge_secret_file(file); !safe) return safe.error();
  std::vector<access::api_key> keys;
  if (!s.keys_file.empty()) {
    const auto text = cli::read_small_file(s.keys_file);
    if (!text) return error{text.error().kind, "server.keys_file: " + text.error().message, "server.keys_file"};
    auto read = access::parse_keys(*text, s.keys_file);
    if (!read) return read.error();
    keys = std::move(*read);
  }
  if (keys.empty() && s.password.empty() && config::asks_for_secret(c))
    log::warning("the keys file has no key; all clients are refused until it has one", {{"file", s.keys_file}});
  return keys;
}

}  // namespace skein::supervisor
