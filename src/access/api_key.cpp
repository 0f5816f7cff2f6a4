#include "access/api_key.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>

namespace skein::access {
namespace {

constexpr std::size_t name_bytes_max = 64;
constexpr std::string_view reserved_names[] = {"default", "open", "none", "password", "anonymous"};

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

/// Removes the next word from the line and returns it.
std::string_view take_word(std::string_view& line) {
  const auto begin = std::min(line.find_first_not_of(" \t\r"), line.size());
  const auto end = std::min(line.find_first_of(" \t\r", begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

std::optional<sha256_digest> digest_of(std::string_view hex) {
  sha256_digest digest;
  if (hex.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const char* const at = hex.data() + 2 * i;
    const auto [end, code] = std::from_chars(at, at + 2, digest[i], 16);
    if (code != std::errc() || end != at + 2) return std::nullopt;
  }
  return digest;
}

template <typename Number>
bool read_number(std::string_view text, Number& to) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), to);
  return code == std::errc() && end == text.data() + text.size() && to > 0;
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  for (std::size_t comma; !list.empty(); list.remove_prefix(std::min(comma + 1, list.size()))) {
    comma = std::min(list.find(','), list.size());
    parts.emplace_back(list.substr(0, comma));
    if (comma + 1 == list.size()) parts.emplace_back();  // a trailing comma: the last name is empty
  }
  return parts;
}

/// Applies one setting to the key; returns what is wrong with it, or an empty string.
std::string take_setting(std::string_view word, api_key& key) {
  const auto sign = std::min(word.find('='), word.size());
  const std::string_view what = word.substr(0, sign);
  const std::string_view value = word.substr(std::min(sign + 1, word.size()));
  if (what == "admin" && sign == word.size()) {
    key.admin = true;
  } else if (what == "concurrent") {
    if (!read_number(value, key.concurrent_max)) return "concurrent: must be a number from 1 to 4294967295";
  } else if (what == "tokens-per-minute") {
    if (!read_number(value, key.tokens_per_minute) || key.tokens_per_minute > 1'000'000'000'000)
      return "tokens-per-minute: must be a number from 1 to 1000000000000";
  } else if (what == "models") {
    key.models = split(value);
    if (key.models.empty() || std::ranges::find(key.models, "") != key.models.end())
      return "models: must be names separated by commas";
  } else if (what == "tenant") {
    if (const auto no = new_name_complaint(value); !no.empty()) return "tenant: " + std::string(no);
    key.tenant = value;
  } else {
    return "unknown setting \"" + std::string(word) +
           "\"; accepted: concurrent=, tokens-per-minute=, models=, tenant= and admin";
  }
  return {};
}

/// Messages never quote the hash: an operator may have put the secret in its place.
std::string take_line(std::string_view line, api_key& key) {
  key.name = take_word(line);
  if (const auto no = new_name_complaint(key.name); !no.empty()) return "name: " + std::string(no);
  key.tenant = key.name;
  const auto hash = digest_of(take_word(line));
  if (!hash) return "hash: the second word must be the hash of the key, 64 hexadecimal digits (skein keys hash)";
  key.hash = *hash;
  for (auto word = take_word(line); !word.empty(); word = take_word(line))
    if (auto no = take_setting(word, key); !no.empty()) return no;
  return {};
}

}  // namespace

std::string_view name_complaint(std::string_view name) {
  if (name.empty() || name.size() > name_bytes_max) return "must have 1 to 64 characters";
  if (!std::ranges::all_of(name, is_name_letter)) return "may contain only letters, digits, '.', '_' and '-'";
  return {};
}

std::string_view new_name_complaint(std::string_view name) {
  if (std::ranges::find(reserved_names, name) != std::end(reserved_names))
    return "is reserved: default, open, none, password and anonymous are names that the server uses";
  return name_complaint(name);
}

result<std::vector<api_key>> parse_keys(std::string_view text, const std::string& file) {
  std::vector<api_key> keys;
  std::set<std::string> names;
  std::set<sha256_digest> hashes;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end), look = line;
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view first = take_word(look);
    if (first.empty() || first.front() == '#') continue;
    api_key key;
    std::string complaint = take_line(line, key);
    if (complaint.empty() && !names.insert(key.name).second) complaint = "name: there are two keys named " + key.name;
    if (complaint.empty() && !hashes.insert(key.hash).second)
      complaint = "hash: " + key.name + " has the same secret as another key";
    if (complaint.empty() && keys.size() >= keys_max) complaint = "too many keys: at most 10000 are accepted";
    if (!complaint.empty())
      return error{error_kind::bad_config, file + ':' + std::to_string(number) + ": " + std::move(complaint),
                   "server.keys_file"};
    keys.push_back(std::move(key));
  }
  return keys;
}

std::string to_line(const api_key& key) {
  std::string line = key.name + ' ' + to_hex(key.hash);
  if (key.concurrent_max > 0) line += " concurrent=" + std::to_string(key.concurrent_max);
  if (key.tokens_per_minute > 0) line += " tokens-per-minute=" + std::to_string(key.tokens_per_minute);
  for (std::size_t i = 0; i < key.models.size(); ++i) line += (i == 0 ? " models=" : ",") + key.models[i];
  if (key.tenant != key.name) line += " tenant=" + key.tenant;
  if (key.admin) line += " admin";
  return line;
}

result<std::string> new_secret() {
  static constexpr char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::array<std::uint8_t, 43> bytes;  // six bits of each are used
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return error{error_kind::io, "getrandom failed: the system returned no random bytes", ""};
  std::string secret = "sk-skein-";
  for (const auto byte : bytes) secret += letters[byte % 64];
  return secret;
}

sha256_digest hash_of(std::string_view secret) {
  return sha256({reinterpret_cast<const std::uint8_t*>(secret.data()), secret.size()});
}

bool same(const sha256_digest& a, const sha256_digest& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace skein::access
