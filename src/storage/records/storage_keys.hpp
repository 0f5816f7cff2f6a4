#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "storage/records/records.hpp"

/// Keys in the database. Numbers are big-endian, so that keys sort by number. Texts that are followed by more data are
/// prefixed with their length, so that different names give different keys.
namespace skein::storage::keys {

inline void append(std::string& key, std::unsigned_integral auto n) {
  for (std::size_t i = sizeof n; i-- > 0;) key.push_back(static_cast<char>(n >> 8 * i));
}

/// Keys in the family `meta`: the format of the database, and the next session number.
inline constexpr std::string_view format = "format", next_uid = "next_uid";

/// The prefix of all session keys of a tenant; the session id follows.
[[nodiscard]] inline std::string of_tenant(const tenant_id& tenant) {
  std::string key;
  append(key, static_cast<std::uint32_t>(tenant.size()));
  return key += tenant;
}
/// The tenant of a session key; nullopt if it is not a session key.
[[nodiscard]] inline std::optional<tenant_id> tenant_of(const std::string& session) {
  constexpr std::size_t prefix = sizeof(std::uint32_t);
  std::size_t size = 0;
  for (std::size_t i = 0; i < prefix && i < session.size(); ++i)
    size = size << 8 | static_cast<std::uint8_t>(session[i]);
  if (session.size() < prefix || session.size() - prefix < size) return std::nullopt;
  return session.substr(prefix, size);
}
[[nodiscard]] inline std::string of_session(const session_key& session) {
  return of_tenant(session.tenant) += session.id;
}

[[nodiscard]] inline std::string of_number(std::uint64_t n) {
  std::string key;
  append(key, n);
  return key;
}
[[nodiscard]] inline std::string of_version(session_uid owner, version_id version) {
  std::string key = of_number(owner);
  append(key, version);
  return key;
}
[[nodiscard]] inline std::string of_state(const state_key& state) {
  return of_number(state.owner) += of_number(state.number);
}

/// Key of a session's list of shared states, in the family `meta`, under a prefix that no counter has.
inline constexpr std::string_view shares_prefix = "shares/";
[[nodiscard]] inline std::string of_shares(session_uid borrower) {
  std::string key(shares_prefix);
  append(key, borrower);
  return key;
}

/// Key that marks a session whose versions are staged, likewise.
inline constexpr std::string_view staged_prefix = "staged/";
[[nodiscard]] inline std::string of_staged(session_uid uid) {
  std::string key(staged_prefix);
  append(key, uid);
  return key;
}

/// Records by session number. forks/: the origin of a fork. stems/: the session keeps versions for forks. trims/: some
/// of the versions that it keeps may no longer be needed.
inline constexpr std::string_view forks_prefix = "forks/", stems_prefix = "stems/", trims_prefix = "trims/";
[[nodiscard]] inline std::string of_counter(std::string_view prefix, session_uid uid) {
  std::string key(prefix);
  append(key, uid);
  return key;
}
[[nodiscard]] inline std::string of_fork(session_uid uid) { return of_counter(forks_prefix, uid); }
[[nodiscard]] inline std::string of_stem(session_uid uid) { return of_counter(stems_prefix, uid); }
[[nodiscard]] inline std::string of_trim(session_uid uid) { return of_counter(trims_prefix, uid); }

/// The big-endian number at a position in a key; bytes past the end of the key are left out.
[[nodiscard]] inline std::uint64_t number_at(std::string_view key, std::size_t at, std::size_t bytes = 8) {
  std::uint64_t n = 0;
  for (std::size_t i = at; i < at + bytes && i < key.size(); ++i) n = n << 8 | static_cast<std::uint8_t>(key[i]);
  return n;
}

/// The first key after all keys with this prefix; empty if there is none.
[[nodiscard]] inline std::string after_all(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

}  // namespace skein::storage::keys
