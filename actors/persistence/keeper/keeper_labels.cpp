// Titles and metadata of sessions, and sessions that are created before their first turn.
#include <utility>

#include "actors/persistence/keeper/session_keeper.hpp"

namespace skein::persistence {

void session_keeper::handle(label_session&& q) {
  auto found = entry_of(q.session);
  if (!found) return refuse(q.reply, found.error());
  open_entry& entry = **found;
  const bool exists = entry.tree && !entry.provisional;
  if (!exists && (!q.make || entry.busy()))
    return refuse(q.reply, {error_kind::not_found, "there is no session '" + q.session.id + "'", "session_id"});
  if (entry.removing) return refuse(q.reply, {error_kind::conflict, "session busy", "session_id"});
  session_record after;
  if (exists) {
    after = entry.tree->record();
  } else {
    after.uid = log_.new_uid();
    after.key = q.session;
    after.created_ms = after.used_ms = ports_.wall();
  }
  if (q.title) after.title = std::move(*q.title);
  if (q.metadata) after.metadata = std::move(*q.metadata);
  if (const auto ok = quota_.allows(q.session.tenant, entry.stored, storage::amount_of(after)); !ok)
    return refuse(q.reply, ok.error());
  if (const auto written = log_.rewrite(after, ports_.time.now()); !written) {
    exists ? distrust(entry, false) : log_.disown(after);
    return refuse(q.reply, written.error());
  }
  if (exists) {
    entry.tree->label(after.title, after.metadata);
  } else {
    entry.uid = after.uid;
    entry.tree.emplace(after);
    entry.in_log = true;
    book_.numbered(entry);
  }
  recount(entry);
  shelve(entry.tree->record());
  deliver(answer{q.reply, done{std::move(after)}});
  trim_shelf();
}

}  // namespace skein::persistence
