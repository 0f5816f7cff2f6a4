#pragma once
#include <optional>

#include "actors/persistence/open/open_sessions.hpp"
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
/// those of open_sessions::entry_of.
[[nodiscard]] result<std::optional<named_place>> find_place(open_sessions& sessions, const session_key& key);

/// The session or version that a name refers to, for read-only requests.
struct named_session {
  const open_entry* entry = nullptr;
  std::optional<session_tree> part;  ///< the path to the named version; none: the whole session
  [[nodiscard]] const session_tree& tree() const { return part ? *part : *entry->tree; }
};
/// As find_place, with the path to a named version as a tree. `version`: only the path to it. Errors: also not_found if
/// the session has no such version.
[[nodiscard]] result<std::optional<named_session>> find_named(open_sessions& sessions, const session_key& key,
                                                              std::optional<version_id> version = {});

}  // namespace skein::persistence
