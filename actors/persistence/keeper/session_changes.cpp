#include "actors/persistence/keeper/session_changes.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "actors/persistence/keeper/named_version.hpp"
#include "actors/persistence/keeper/refusals.hpp"

namespace skein::persistence {
namespace {

constexpr std::uint32_t fork_in_memory_max = 1000;  // versions; a fork with more is read from the log when it is used

}  // namespace

/// A fork with many versions is only loaded into memory when it is used.
void session_changes::handle(fork_session&& q) {
  const auto from = find_place(sessions_, q.from);
  if (!from) return replies_.refuse(q.reply, from.error());
  if (!*from) return replies_.refuse(q.reply, unknown(q.from));
  const open_entry& origin = *(*from)->entry;
  const version_id end = (*from)->end.value_or(origin.tree->record().head);
  const version_id version = q.version.value_or(end);
  if (!origin.tree->offers(version) || ((*from)->end && !origin.tree->ways().leads_to(version, end)))
    return replies_.refuse(q.reply, unknown(q.from, version));
  const auto target = free_for_fork(q.to);
  if (!target) return replies_.refuse(q.reply, target.error());
  open_entry& entry = **target;
  const session_record record = states_.begin_fork(origin, version, q.to);
  std::optional<session_tree> tree;
  if (record.versions <= fork_in_memory_max || !log_.store().forks().of(record.uid) || entry.needed())
    tree = forked(*origin.tree, version, {record.uid, q.to}, record.created_ms);
  auto ok = quota_.allows(q.to.tenant, {}, storage::amount_of(record));
  if (ok) ok = log_.commit_to_disk(record, tree ? tree->all() : std::vector<shared_version>(), ports_.time.now());
  if (!ok) {
    states_.unshare(record.uid);
    log_.disown(record);
    return replies_.refuse(q.reply, ok.error());
  }
  shelf_.put(record);
  if (tree) {
    entry.hold(std::move(*tree));
    sessions_.made(entry);
  } else {
    quota_.replace(q.to.tenant, {}, storage::amount_of(record));
    book_.forget(entry);
  }
  replies_.deliver(answer{q.reply, done{record}});
  removals_.trim_shelf();
}

/// The entry of a name that is free. Errors: conflict if a session has it or is about to.
result<open_entry*> session_changes::free_for_fork(const session_key& name) {
  auto to = sessions_.entry_of(name);
  if (to && ((*to)->tree || (*to)->busy()))
    return error{error_kind::conflict, "session '" + name.id + "' already exists", "to"};
  return to;
}

void session_changes::handle(rollback_session&& q) {
  auto found = sessions_.entry_of(q.session);
  if (!found) return replies_.refuse(q.reply, found.error());
  open_entry& entry = **found;
  if (!entry.exists()) return replies_.refuse(q.reply, unknown(q.session));
  if (entry.busy()) return replies_.refuse(q.reply, session_busy());
  if (!entry.tree->offers(q.version)) return replies_.refuse(q.reply, unknown(q.session, q.version));
  session_record after = entry.tree->record();
  after.head = q.version;
  after.total_tokens = entry.tree->total_tokens(q.version);
  after.used_ms = ports_.wall();
  if (const auto written = log_.rewrite(after, ports_.time.now()); !written) {
    sessions_.distrust(entry, false);
    return replies_.refuse(q.reply, written.error());
  }
  entry.tree->set_head(q.version, after.used_ms);
  states_.note_head(entry);
  replies_.deliver(answer{q.reply, done{entry.tree->record()}});
}

void session_changes::handle(label_session&& q) {
  auto found = sessions_.entry_of(q.session);
  if (!found) return replies_.refuse(q.reply, found.error());
  open_entry& entry = **found;
  const bool exists = entry.exists();
  if (!exists && (!q.make || entry.busy())) return replies_.refuse(q.reply, unknown(q.session));
  if (entry.removing()) return replies_.refuse(q.reply, session_busy());
  session_record after;
  if (exists) {
    after = entry.tree->record();
  } else {
    after.uid = log_.new_uid();
    after.key = q.session;
    after.created_ms = after.used_ms = ports_.wall();
    after.made_empty = true;
  }
  if (q.title) after.title = std::move(*q.title);
  if (q.metadata) after.metadata = std::move(*q.metadata);
  if (const auto ok = quota_.allows(q.session.tenant, entry.stored, storage::amount_of(after)); !ok)
    return replies_.refuse(q.reply, ok.error());
  if (const auto written = log_.rewrite(after, ports_.time.now()); !written) {
    exists ? sessions_.distrust(entry, false) : log_.disown(after);
    return replies_.refuse(q.reply, written.error());
  }
  if (exists) {
    entry.tree->label(after.title, after.metadata);
    sessions_.recount(entry);
  } else {
    entry.hold(session_tree(after));
    sessions_.made(entry);
  }
  shelf_.put(entry.tree->record());
  replies_.deliver(answer{q.reply, done{std::move(after)}});
  removals_.trim_shelf();
}

}  // namespace skein::persistence
