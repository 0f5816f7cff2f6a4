#pragma once
#include <optional>
#include <utility>

#include "actors/persistence/sessions/session_book.hpp"
#include "actors/persistence/sessions/session_tree.hpp"
#include "base/result.hpp"

namespace skein::persistence {

/// The session or version that a name refers to.
struct named_place {
  const open_entry* entry = nullptr;  ///< the session that holds the versions
  std::optional<version_id> end;      ///< the named version; none: the whole session
};

/// The session of that name. If it does not exist, "a:1" is the session "a" up to its version 1, from which a turn on
/// "a:1" would start. Empty if neither exists; a session does not exist before its first turn is committed. Errors:
/// those of `entry_of`, which finds the entry of a key.
template <typename EntryOf>
result<std::optional<named_place>> find_place(const session_key& key, const EntryOf& entry_of) {
  const auto readable = [](const open_entry& e) { return e.tree && !e.provisional; };
  const auto own = entry_of(key);
  if (!own) return own.error();
  if (readable(**own)) return std::optional(named_place{*own, {}});
  const auto name = branch_named(key);
  if (!name) return std::optional<named_place>();
  const auto origin = entry_of(name->first);
  if (!origin) return origin.error();
  const open_entry& whole = **origin;
  if (!readable(whole) || whole.removing || !whole.tree->offers(name->second)) return std::optional<named_place>();
  return std::optional(named_place{&whole, name->second});
}

/// The session or version that a name refers to, for read-only requests.
struct named_session {
  const open_entry* entry = nullptr;
  std::optional<session_tree> part;  ///< the path to the named version; none: the whole session
  [[nodiscard]] const session_tree& tree() const { return part ? *part : *entry->tree; }
};
/// As find_place, with the path to a named version as a tree.
template <typename EntryOf>
result<std::optional<named_session>> find_named(const session_key& key, const EntryOf& entry_of) {
  const auto place = find_place(key, entry_of);
  if (!place) return place.error();
  if (!*place) return std::optional<named_session>();
  named_session found{(*place)->entry, {}};
  const session_tree& whole = *found.entry->tree;
  if ((*place)->end) found.part = forked(whole, *(*place)->end, {found.entry->uid, key}, whole.record().used_ms);
  return std::optional(std::move(found));
}

}  // namespace skein::persistence
