#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/sha256.hpp"

/// API keys as stored in a key file: a name, the hash of a secret that the file itself does not contain, and the key's
/// permissions.
namespace skein::access {

struct api_key {
  std::string name;  ///< 1 to 64 letters, digits, '.', '_' and '-'; appears in logs and metrics
  sha256_digest hash{};
  tenant_id tenant;                  ///< owner of the sessions and prefixes that the key sees; default: the key's name
  bool admin = false;                ///< may change models and tuned states, and see the activity of all clients
  std::uint32_t concurrent_max = 0;  ///< concurrent requests; 0: no limit
  std::uint64_t tokens_per_minute = 0;  ///< prompt and generated tokens together; 0: no limit
  std::vector<std::string> models;      ///< models that the key may use; empty: all
};

inline constexpr std::size_t keys_max = 10'000;  ///< per file

/// Reads a file of keys. A line is a name, the hash in 64 hexadecimal digits, and settings:
///   alice 9f86d0...0a08 concurrent=8 tokens-per-minute=60000 models=rwkv7-g1,skein-demo tenant=team admin
/// Empty lines and those that begin with # are skipped. Errors: bad_config naming `file`, line and word.
[[nodiscard]] result<std::vector<api_key>> parse_keys(std::string_view text, const std::string& file);
/// The key as a line, without the newline.
[[nodiscard]] std::string to_line(const api_key& key);
/// What is wrong with a tenant's name; empty if nothing is.
[[nodiscard]] std::string_view name_complaint(std::string_view name);
/// The same for the name or tenant of a key. Names that the server uses itself are reserved: "default", for example, is
/// the holder of the password.
[[nodiscard]] std::string_view new_name_complaint(std::string_view name);

/// A new secret: 256 random bits as printable text. Errors: io.
[[nodiscard]] result<std::string> new_secret();
[[nodiscard]] sha256_digest hash_of(std::string_view secret);
/// Compares in constant time.
[[nodiscard]] bool same(const sha256_digest& a, const sha256_digest& b);

}  // namespace skein::access
