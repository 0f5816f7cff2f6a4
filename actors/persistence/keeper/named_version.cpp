#include "actors/persistence/keeper/named_version.hpp"

#include <utility>

#include "actors/persistence/keeper/refusals.hpp"

namespace skein::persistence {

result<std::optional<named_place>> find_place(open_sessions& sessions, const session_key& key) {
  const auto own = sessions.entry_of(key);
  if (!own) return own.error();
  if ((*own)->exists()) return std::optional(named_place{*own, {}});
  const auto name = branch_named(key);
  if (!name) return std::optional<named_place>();
  const auto origin = sessions.entry_of(name->first);
  if (!origin) return origin.error();
  const open_entry& whole = **origin;
  if (!whole.exists() || whole.removing() || !whole.tree->offers(name->second)) return std::optional<named_place>();
  return std::optional(named_place{&whole, name->second});
}

result<std::optional<named_session>> find_named(open_sessions& sessions, const session_key& key,
                                                std::optional<version_id> version) {
  const auto place = find_place(sessions, key);
  if (!place) return place.error();
  if (!*place) return std::optional<named_session>();
  named_session found{(*place)->entry, {}};
  const session_tree& whole = *found.entry->tree;
  auto end = (*place)->end;
  if (version) {
    const bool reached = whole.offers(*version) && (!end || whole.ways().leads_to(*version, *end));
    if (*version == storage::beginning || !reached) return unknown(key, *version);
    end = version;
  }
  if (end) found.part = forked(whole, *end, {found.entry->uid, key}, whole.record().used_ms);
  return std::optional(std::move(found));
}

}  // namespace skein::persistence
