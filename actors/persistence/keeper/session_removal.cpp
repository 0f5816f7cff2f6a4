#include "actors/persistence/keeper/session_removal.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "actors/persistence/keeper/refusals.hpp"

namespace skein::persistence {
namespace {

// Sessions that are removed at once, and their bytes in the log: they are loaded to be removed.
constexpr std::uint32_t piece_sessions = 200;
constexpr std::uint64_t piece_bytes = 16u << 20;

}  // namespace

void session_removal::handle(remove_session&& q) {
  if (!q.turn.empty()) {
    const auto entry = sessions_.entry_of(q.session);
    const auto v = entry && (*entry)->tree ? (*entry)->tree->with_request_key(q.turn) : nullptr;
    if (v) return remove_branch(q.reply, **entry, v->id);
    const bool runs = entry && (*entry)->answers(q.turn);
    return replies_.refuse(q.reply, runs ? session_busy() : unknown_turn(q.turn));
  }
  if (q.with_prefix) return remove_prefixed(q);
  if (remove_as_branch(q)) return;
  removal r{.to = q.reply};
  if (const auto ok = take(q.session, r); !ok) return replies_.refuse(q.reply, ok.error());
  if (r.gone.empty() && r.count == 0) return replies_.refuse(q.reply, unknown(q.session));
  begin(std::move(r));
}

/// Adds a session, if it exists, to those that are removed next. A damaged one is removed at once.
result<void> session_removal::take(const session_key& key, removal& r) {
  auto entry = sessions_.entry_of(key);
  if (!entry && entry.error().kind == error_kind::damaged) {
    const auto erased = erase_damaged(key);
    if (erased) ++r.count;
    return erased;
  }
  if (!entry) return entry.error();
  if ((*entry)->busy()) return session_busy();
  if ((*entry)->tree) r.gone.push_back(key);
  return {};
}

/// Removes a session, "NAME:" and all whose names begin so, in pieces. Turns that run are noticed before the first one.
void session_removal::remove_prefixed(const remove_session& q) {
  const session_key prefix{q.session.tenant, q.session.id + ':'};
  bool busy = false;
  book_.for_each([&](const open_entry& entry) {
    const bool named_so = entry.key.tenant == prefix.tenant && entry.key.id.starts_with(prefix.id);
    busy = busy || (named_so && entry.exists() && entry.busy());
  });
  if (busy) return replies_.refuse(q.reply, session_busy());
  removal r{.to = q.reply, .prefix = prefix.id, .at = prefix};
  if (const auto ok = take(q.session, r); !ok) return replies_.refuse(q.reply, ok.error());
  if (prefix.id.size() <= storage::session_id_bytes_max)  // no session has a longer name
    if (const auto ok = take(prefix, r); !ok) return replies_.refuse(q.reply, ok.error());
  begin(std::move(r));
}

/// Continues a removal by prefix behind the sessions that are gone.
void session_removal::remove_next(removal r) {
  r.gone.clear();
  bool found = false;
  const auto taken = guarded(error_kind::internal, [&]() -> result<void> {
    const auto page = sessions_.all(r.at.tenant, r.at.id, piece_sessions);
    if (!page) return page.error();
    std::uint64_t bytes = 0;
    for (const auto& record : *page) {
      if (bytes >= piece_bytes || !record.key.id.starts_with(r.prefix)) break;
      if (const auto ok = take(record.key, r); !ok) return ok;
      bytes += record.log_bytes;
      r.at = record.key;
      found = true;
    }
    return {};
  });
  if (!taken) return replies_.refuse(*r.to, taken.error());
  if (!found) return replies_.deliver(answer{*r.to, removed{r.count}});
  begin(std::move(r));
}

/// Removes version 1 of "a" for the name "a:1" if no session has that name. Versions that continue it keep their texts.
bool session_removal::remove_as_branch(const remove_session& q) {
  const auto branch = branch_named(q.session);
  if (!branch) return false;
  const auto own = sessions_.entry_of(q.session);
  const auto origin = own && !(*own)->tree ? sessions_.entry_of(branch->first) : own;
  if (!own || !origin || *own == *origin) return false;
  open_entry& whole = **origin;
  if (!whole.exists() || !whole.tree->offers(branch->second)) return false;
  remove_branch(q.reply, whole, branch->second);
  return true;
}

/// Removes an unreadable session, as far as its parts can be identified.
result<void> session_removal::erase_damaged(const session_key& key) {
  const auto record = log_.store().find(key);
  if (!record && record.error().kind != error_kind::damaged) return record.error();
  if (!record || !*record) return log_.store().forget_damaged(key);
  states_.forget_states((*record)->uid);  // the record is readable, its versions are damaged
  auto erased = states_.erase(**record);
  if (erased) quota_.replace(key.tenant, storage::amount_of(**record), {});
  return erased;
}

// ---------------------------------------------------------------- versions

/// Removing the last version removes the session, unless a client created it before its first turn.
void session_removal::remove_branch(const return_address& to, open_entry& entry, version_id version) {
  if (entry.busy()) return replies_.refuse(to, session_busy());
  const auto r = entry.tree->removal_of(version, ports_.wall());
  if (r.record.versions == 0 && !r.record.made_empty) return begin({.gone = {entry.key}, .to = to});
  entry.begin_removal();
  states_.forget_state(entry, version);
  // Runs after a pending write of the state.
  ports_.runner.run([this, to, owner = entry.uid, version]() -> aftermath {
    return [this, to, owner, version] { finish_branch(to, owner, version); };
  });
}

void session_removal::finish_branch(const return_address& to, session_uid owner, version_id version) {
  open_entry& entry = *book_.find(owner);
  entry.end_removal();
  const auto r = entry.tree->removal_of(version, ports_.wall());
  auto shared = log_.store().shares().of(owner);
  std::erase_if(shared, [&](const state_key& state) { return version_of(state) != version; });
  const auto last = log_.store().last_held(owner, shared);
  const auto removed_it = last ? log_.remove_versions(r, ports_.time.now()) : result<void>(last.error());
  if (removed_it) {
    states_.forget_shared(*last);
    entry.tree->remove(r);
    states_.note_head(entry);
    sessions_.recount(entry);
    shelf_.put(entry.tree->record());
    ++removed_count_;
    replies_.deliver(answer{to, removed{1}});
  } else {
    sessions_.distrust(entry, true);
    replies_.refuse(to, removed_it.error());
  }
  turns_.advance(entry);
}

// ---------------------------------------------------------------- sessions

void session_removal::begin(removal r) {
  for (const auto& key : r.gone) {
    open_entry& entry = *book_.find(key);
    entry.begin_removal();
    states_.forget_states(entry.uid);
    states_.stop_expecting_unshared(entry);
  }
  ports_.runner.run([this, r = std::move(r)]() -> aftermath { return [this, r] { finish(r); }; });
}

void session_removal::finish(removal r) {
  std::optional<error> trouble;
  for (const auto& key : r.gone) {
    open_entry& entry = *book_.find(key);
    entry.end_removal();
    const auto removed = trouble ? result<void>(*trouble) : states_.erase(entry.tree->record());
    if (removed) {
      shelf_.drop(entry.uid);
      states_.forget_content(entry);
      ++removed_count_;
      ++r.count;
    } else {
      if (!trouble) sessions_.distrust(entry, true);
      trouble = removed.error();
    }
  }
  const bool over = trouble || r.prefix.empty();
  if (r.to && trouble) replies_.refuse(*r.to, *trouble);
  if (r.to && over && !trouble) replies_.deliver(answer{*r.to, removed{r.count}});
  for (const auto& key : r.gone) turns_.advance(*book_.find(key));
  if (!over) remove_next(std::move(r));
}

void session_removal::expire(std::vector<session_key> gone) { begin({.gone = std::move(gone)}); }

void session_removal::trim_shelf() {
  std::vector<session_key> gone;
  std::uint64_t bytes = shelf_.bytes();
  for (const auto& oldest : shelf_.places()) {
    if (bytes <= shelf_bytes_max_) break;
    const auto entry = sessions_.entry_of(oldest.key);
    const bool goes = entry && (*entry)->removing();  // its bytes are counted until the removal is complete
    const bool can_go = entry && !(*entry)->busy() && (*entry)->waiting.empty();
    if (goes || can_go) bytes -= oldest.bytes;
    if (can_go) gone.push_back(oldest.key);
  }
  if (!gone.empty()) expire(std::move(gone));
}

void session_removal::replace_content(open_entry& entry) {
  session_record old = entry.tree->record();
  states_.forget_states(old.uid);
  ++removed_count_;
  shelf_.drop(old.uid);
  book_.forget_content(entry);
  sessions_.recount(entry);
  old.key.id.clear();  // so that erasing keeps the new session's record
  ports_.runner.run([this, old]() -> aftermath {
    return [this, old] { ignore(states_.erase(old), "the old session is unreachable"); };
  });
}

}  // namespace skein::persistence
