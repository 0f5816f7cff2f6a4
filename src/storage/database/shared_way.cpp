#include "storage/database/shared_way.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "storage/database/quarantine.hpp"
#include "storage/records/record_codec.hpp"
#include "storage/records/storage_keys.hpp"

namespace skein::storage {
namespace {

constexpr version_id window_max = 1024;  // versions read in one scan

std::string place_name(const version_shares::place& at) {
  return "version " + std::to_string(at.version) + " of session number " + std::to_string(at.owner);
}

/// A version as it was read under the session that wrote it.
struct window_version {
  version_id id = beginning;
  result<version_record> version;
  std::string damaged;  ///< the record, if it cannot be decoded
};

result<std::vector<window_version>> read_window(database::impl& db, session_uid owner, version_id first,
                                                version_id last) {
  std::vector<window_version> all;
  const auto looked = db.scan(
      family::versions, keys::of_version(owner, first), keys::of_version(owner, last) + '\0',
      [&](std::string_view key, std::string_view value) {
        const auto id = static_cast<version_id>(keys::number_at(key, sizeof owner, sizeof(version_id)));
        auto version = decode_any_version(value, owner);
        if (version && version->id != id)
          version = error{error_kind::damaged, "it is the record of version " + std::to_string(version->id), {}};
        const bool whole = version.has_value();
        all.push_back({id, std::move(version), whole ? std::string() : std::string(value)});
        return true;
      });
  if (!looked) return looked.error();
  return all;
}

error unreadable_version(database::impl& db, const version_shares::place& at, const window_version* found) {
  const std::string key = keys::of_version(at.owner, at.version);
  if (found && !is_damage(found->version.error())) return found->version.error();
  if (found) return set_aside(db, family::versions, key, found->damaged, place_name(at), found->version.error());
  if (const auto known = none_set_aside(db, family::versions, key, place_name(at), keys_meant::exactly); !known)
    return known.error();
  return {error_kind::damaged, place_name(at) + " is missing; a fork shares it", {}};
}

}  // namespace

/// Reads a window of adjacent versions at a time, and widens it as long as most of them are on the path.
result<std::vector<version_record>> read_way(database::impl& db, const version_shares& shares,
                                             const version_shares::place& last) {
  std::vector<version_record> way;
  version_id window = 16;
  for (auto at = last; at.version != beginning;) {
    at = shares.written_by(at.owner, at.version);
    const version_id before = shares.inherited(at.owner);  // its own versions have higher numbers
    if (before >= at.version) return unreadable_version(db, at, nullptr);
    const version_id first = at.version - std::min<version_id>(at.version - before, window) + 1;
    auto found = read_window(db, at.owner, first, at.version);
    if (!found) return found.error();
    version_id used = 0;
    for (auto one = found->rbegin(); one != found->rend(); ++one) {
      if (one->id != at.version) continue;
      if (!one->version) return unreadable_version(db, at, &*one);
      at.version = one->version->parent;
      way.push_back(std::move(*one->version));
      ++used;
    }
    if (used == 0) return unreadable_version(db, at, nullptr);
    window = 2 * used >= window ? std::min(2 * window, window_max) : std::max<version_id>(window / 2, 1);
  }
  std::ranges::reverse(way);
  return way;
}

result<version_shares> read_shares(database::impl& db) {
  version_shares shares;
  const std::string first(keys::forks_prefix);
  const auto looked =
      db.scan(family::meta, first, keys::after_all(first), [&](std::string_view key, std::string_view value) {
        const session_uid fork = keys::number_at(key, first.size());
        if (const auto origin = decode_origin(value, fork)) shares.set(fork, {origin->owner, origin->last});
        return true;
      });
  if (!looked) return looked.error();
  return shares;
}

std::vector<version_record> readable_versions(database::impl& db, const version_shares& shares, session_uid uid) {
  std::vector<version_record> all;
  std::string bytes;
  const auto found = db.read(family::meta, keys::of_fork(uid), [&](std::string_view value) { bytes = value; });
  if (found && *found)
    if (const auto origin = decode_origin(bytes, uid))
      if (auto way = read_way(db, shares, {origin->owner, origin->shown})) all = std::move(*way);
  const std::string first = keys::of_number(uid);
  const auto looked = db.scan(family::versions, first, keys::after_all(first), [&](auto, std::string_view value) {
    if (auto version = decode_version(value, uid)) all.push_back(std::move(*version));
    return true;
  });
  ignore(looked, "versions after an unreadable one are missing");
  return all;
}

}  // namespace skein::storage
