#include "storage/repair/recovery.hpp"

#include <algorithm>
#include <utility>

#include "storage/database/quarantine.hpp"
#include "storage/records/session_check.hpp"
#include "storage/records/session_names.hpp"
#include "storage/records/storage_keys.hpp"
#include "storage/records/wall_time.hpp"
#include "storage/states/raw_states.hpp"
#include "storage/states/state_record.hpp"

namespace skein::storage {
namespace {

using keys::number_at;

/// The session name in a key.
session_key key_at(std::string_view key) {
  const auto tenant = keys::tenant_of(std::string(key));
  if (!tenant) return {"", std::string(key)};
  return {*tenant, std::string(key.substr(sizeof(std::uint32_t) + tenant->size()))};
}

/// Versions whose ancestors all exist.
std::vector<version_outline> rooted(const std::vector<version_outline>& all) {
  std::vector<version_outline> kept;
  for (const auto& version : all) {
    const auto parent = std::ranges::lower_bound(kept, version.parent, {}, &version_outline::id);
    const bool has_parent = parent != kept.end() && parent->id == version.parent;
    const std::uint64_t before = has_parent ? parent->total_tokens : 0;
    if ((has_parent || version.parent == beginning) && version.total_tokens - before == version.tokens)
      kept.push_back(version);
  }
  return kept;
}

/// The session's record with these versions (at least one) instead of its own.
session_record shortened(session_record session, const std::vector<version_outline>& versions) {
  const auto has = [&](version_id id) { return std::ranges::binary_search(versions, id, {}, &version_outline::id); };
  if (versions.back().id > session.last_version || !has(session.head)) {
    session.head = beginning;
    for (const auto& version : versions)
      if (!version.unfinished && !version.deleted) session.head = version.id;
  }
  session.last_version = std::max(session.last_version, versions.back().id);
  session.versions = static_cast<std::uint32_t>(versions.size());
  session.total_tokens = session.log_bytes = 0;
  for (const auto& version : versions) {
    session.log_bytes += version.bytes;
    if (version.id == session.head) session.total_tokens = version.total_tokens;
  }
  return session;
}

template <typename Value>
void erase_below(std::map<std::string, Value>& all, const std::string& prefix) {
  const auto first = all.lower_bound(prefix);
  auto end = first;
  while (end != all.end() && end->first.starts_with(prefix)) ++end;
  all.erase(first, end);
}

}  // namespace

result<void> recovery::run() {
  for (const auto step :
       {&recovery::counters, &recovery::index, &recovery::sessions, &recovery::quarantine, &recovery::running,
        &recovery::outlines, &recovery::versions, &recovery::shares, &recovery::states, &recovery::rest}) {
    if (const auto done = (this->*step)(); !done) return done;
    if (!written_) return written_;
  }
  return {};
}

void recovery::lost(std::string what, std::string why) {
  ++report_.lost_count;
  if (report_.lost.size() < repair_report::findings_max) report_.lost.push_back({std::move(what), std::move(why)});
}

void recovery::write(const std::function<void(change_list&)>& changes) {
  if (into_ && written_) written_ = into_->write(safety::logged, changes);
}

/// Checks the format first: data of a newer program is not repaired.
result<void> recovery::counters() {
  result<void> known;
  const auto read = from_.scan(family::meta, [&](std::string_view key, std::string_view value) {
    if (key == keys::format) {
      const auto format = decode_number(value, record_kind::database_format);
      if (format ? *format > database_format_with_forks : format.error().kind == error_kind::conflict)
        known = error{error_kind::conflict, "the database has a newer format than this program reads", {}};
    } else {
      read_counter(key, value);
    }
  });
  return read ? known : read;
}

void recovery::read_counter(std::string_view key, std::string_view value) {
  const auto after = [&](std::string_view prefix) { return number_at(key, prefix.size()); };
  if (key == keys::next_uid) {
    const auto next = decode_number(value, record_kind::counter);
    next_uid_ = next ? *next : 0;
  } else if (key.starts_with(keys::staged_prefix)) {
    staged_.insert(after(keys::staged_prefix));
  } else if (key.starts_with(keys::stems_prefix)) {
    const auto session_lives = decode_number(value, record_kind::counter);
    if (session_lives && *session_lives == 0) stems_.insert(after(keys::stems_prefix));
  } else if (key.starts_with(keys::forks_prefix)) {
    const session_uid fork = after(keys::forks_prefix);
    if (auto origin = decode_origin(value, fork))
      shared_.add_origin(fork, std::move(*origin));
    else
      lost("origin of " + name_of(fork), origin.error().message);
  } else if (key.starts_with(keys::shares_prefix)) {
    const session_uid borrower = after(keys::shares_prefix);
    if (auto states = decode_shares(value, borrower))
      shares_[borrower] = std::move(*states);
    else
      lost("list of states that " + name_of(borrower) + " shares", states.error().message);
  }
}

result<void> recovery::index() {
  return from_.scan(family::state_index, [&](std::string_view key, std::string_view value) {
    const state_key of{number_at(key, 0), number_at(key, 8)};
    last_uid_ = std::max(last_uid_, of.owner);
    auto entry = decode_entry(value, of);
    if (!entry)
      lost(name_of(of), "its entry in the index: " + entry.error().message);
    else if (entry->complete)
      index_[of] = std::move(*entry);
  });
}

result<void> recovery::sessions() {
  return from_.scan(family::sessions, [&](std::string_view key, std::string_view value) {
    auto session = decode_session(value);
    if (!session) return lose(key_at(key), session.error().message);
    if (keys::of_session(session->key) != key) return lose(key_at(key), "it is the record of " + name_of(session->key));
    const auto [at, is_new] = sessions_.try_emplace(session->uid, *session);
    if (!is_new) lose(session->key, "its number is that of " + name_of(at->second.key));
  });
}

/// Records in quarantine. A session with an intact record was set aside because it lost turns; it is recovered like the
/// others.
result<void> recovery::quarantine() {
  std::set<session_key> names;
  for (const auto& [uid, session] : sessions_) names.insert(session.key);
  return from_.quarantine([&](std::string_view key, std::string_view value) {
    auto aside = decode_set_aside(value);
    if (!aside) aside = set_aside_record{"the record was lost from the quarantine", wall_time_ms(), {}};
    const auto session = decode_session(aside->record);
    if (session && key == quarantine_key(family::sessions, keys::of_session(session->key)) &&
        !sessions_.contains(session->uid) && names.insert(session->key).second) {
      sessions_[session->uid] = *session;
      lost(name_of(session->key),
           "it was set aside: " + aside->reason + "; it is available again with its remaining versions");
      return;
    }
    set_aside_[std::string(key)] = std::move(*aside);
  });
}

/// Turns that were running when the server stopped.
result<void> recovery::running() {
  return from_.scan(family::running, [&](std::string_view key, std::string_view value) {
    const session_uid uid = number_at(key, 0);
    last_uid_ = std::max(last_uid_, uid);
    if (const auto turn = decode_running(value, uid))
      running_[std::string(key)] = value;
    else
      lost("running turn of " + name_of(uid), turn.error().message);
  });
}

/// Reads the versions that forks may share, so that each fork can be checked when its own versions are read.
result<void> recovery::outlines() {
  session_uid of = 0;
  std::vector<version_outline> all;
  const auto finish = [&] {
    if (!all.empty()) shared_.add(of, std::exchange(all, {}));
  };
  const auto read = from_.scan(family::versions, [&](std::string_view key, std::string_view value) {
    const session_uid owner = number_at(key, 0);
    if (owner != of) finish();
    of = owner;
    if (!shared_.has_forks(owner)) return;
    const auto version = decode_any_version(value, owner);
    if (version && keys::of_version(owner, version->id) == key) all.push_back(outline_of(*version));
  });
  finish();
  return read;
}

/// Versions by session, in key order.
result<void> recovery::versions() {
  session_uid of = 0;
  found_versions found;
  std::set<session_uid> seen;
  const auto finish = [&] {
    if (of != 0) take(of, found);
    seen.insert(of);
    found = {};
  };
  auto read = from_.scan(family::versions, [&](std::string_view key, std::string_view value) {
    if (const session_uid owner = number_at(key, 0); owner != of) {
      finish();
      of = owner;
    }
    auto version = decode_any_version(value, of);
    if (version && keys::of_version(of, version->id) == key)
      (is_kept(value) ? found.kept : found.whole).push_back(std::move(*version));
    else
      ++found.unreadable;
  });
  if (!read) return read;
  finish();
  for (const auto& [uid, session] : sessions_)
    if (!seen.contains(uid)) take(uid, {});
  return {};
}

void recovery::take(session_uid uid, const found_versions& found) {
  last_uid_ = std::max(last_uid_, uid);
  if (const auto session = sessions_.find(uid); session != sessions_.end())
    take_session(session->second, found);
  else if (!staged_.contains(uid) && !stems_.contains(uid))
    take_nameless(uid, found);
  if (!kept_.contains(uid) && shared_.has_forks(uid)) keep_for_forks(uid, found);
}

void recovery::take_session(const session_record& session, const found_versions& found) {
  auto all = shared_.inherited(session.uid);
  if (!all) return lose(session.key, "a version that it shares with another session is lost");
  const auto shared = all->size();
  for (const auto& version : found.whole) all->push_back(outline_of(version));
  const auto sound = check_session(session, *all);
  if (sound && found.unreadable == 0) return keep(session, *all, found);
  const auto left = rooted(*all);
  if (left.empty()) return lose(session.key, "all of its " + std::to_string(session.versions) + " versions are lost");
  const auto short_one = shortened(session, left);
  keep(short_one, left, found);
  const std::size_t had = std::max<std::size_t>(session.versions, shared + found.whole.size() + found.unreadable);
  lost(name_of(session.key), std::to_string(had - left.size()) + " of " + std::to_string(had) +
                                 " versions are lost; it ends at version " + std::to_string(short_one.head) +
                                 (short_one.head == session.head ? " as before" : ""));
}

/// Names a session without a record; a stored state gives its tenant and model.
void recovery::take_nameless(session_uid uid, const found_versions& found) {
  auto all = shared_.inherited(uid).value_or(std::vector<version_outline>());
  for (const auto& version : found.whole) all.push_back(outline_of(version));
  const auto left = rooted(all);
  if (left.empty() || found.whole.empty()) return lost(name_of(uid), "its name and all of its versions are lost");
  session_record session;
  session.uid = uid;
  session.key = {"recovered", "recovered-" + std::to_string(uid)};
  for (auto at = index_.lower_bound({uid, 0}); at != index_.end() && at->first.owner == uid; ++at) {
    const auto record = record_of(at->second);
    if (!record) continue;
    const auto contents = read_state_record(*record);
    session.key.tenant = contents->label.tenant;
    session.model_identity = contents->label.model_identity;
    break;
  }
  session.created_ms = found.whole.front().created_ms;
  session.used_ms = found.whole.back().created_ms;
  session = shortened(std::move(session), left);
  keep(session, left, found);
  lost(name_of(uid),
       "its name is lost; " + std::to_string(left.size()) + " versions are kept as " + name_of(session.key));
}

/// `versions`: all versions of the session in order, shared ones included.
void recovery::keep(const session_record& session, const std::vector<version_outline>& versions,
                    const found_versions& found) {
  kept_.insert(session.uid);
  ++report_.sessions;
  // Its records in quarantine are no longer part of it.
  for (const family where : {family::versions, family::running, family::state_index})
    erase_below(set_aside_, quarantine_key(where, keys::of_number(session.uid)));
  const auto stays = [&](const version_record& version) {
    return std::ranges::binary_search(versions, version.id, {}, &version_outline::id);
  };
  for (const auto& version : found.whole) {
    if (!stays(version)) continue;
    ++report_.versions;
    running_.erase(keys::of_version(session.uid, version.id));  // the turn was committed
  }
  write([&](change_list& changes) {
    write_shared(changes, session.uid, found.kept, true);
    for (const auto& version : found.whole)
      if (stays(version))
        changes.put(family::versions, keys::of_version(session.uid, version.id), encode_version(session.uid, version));
    changes.put(family::sessions, keys::of_session(session.key), encode_session(session));
  });
}

/// Keeps the versions of a session that no longer exists. The next start deletes those that no fork needs.
void recovery::keep_for_forks(session_uid uid, const found_versions& found) {
  stems_.insert(uid);
  write([&](change_list& changes) {
    write_shared(changes, uid, found.kept, false);
    for (const auto& version : found.whole)
      changes.put(family::versions, keys::of_version(uid, version.id), encode_version(uid, version));
  });
}

void recovery::write_shared(change_list& changes, session_uid uid, const std::vector<version_record>& kept,
                            bool session_lives) {
  const fork_origin* const origin = shared_.origin_of(uid);
  if (origin) {
    changes.put(family::meta, keys::of_fork(uid), encode_origin(uid, *origin));
    changes.put(family::meta, keys::format, encode_number(record_kind::database_format, database_format_with_forks));
  }
  for (const auto& version : kept)
    changes.put(family::versions, keys::of_version(uid, version.id), encode_kept(uid, version));
  if (session_lives && kept.empty() && !(origin && origin->last != origin->shown)) return;
  changes.put(family::meta, keys::of_stem(uid), encode_number(record_kind::counter, session_lives ? 1 : 0));
  changes.put(family::meta, keys::of_trim(uid), {});
}

/// Requests for the session fail as damaged, not as unknown, until its name is freed.
void recovery::lose(const session_key& key, const std::string& why) {
  lost(name_of(key), why);
  set_aside_.try_emplace(quarantine_key(family::sessions, keys::of_session(key)),
                         set_aside_record{why, wall_time_ms(), {}});
}

result<void> recovery::shares() {
  for (const auto& [borrower, states] : shares_)
    if (kept_.contains(borrower))
      write([&](change_list& changes) {
        changes.put(family::meta, keys::of_shares(borrower), encode_shares(borrower, states));
      });
  return {};
}

result<std::string> recovery::record_of(const state_entry& entry) {
  std::string record;
  const family where = entry.key.owner == 0 ? family::prefixes : family::states;
  for (std::uint32_t part = 0; record.size() < entry.bytes; ++part) {
    std::string key = keys::of_state(entry.key);
    keys::append(key, part);
    const auto found = from_.blob(where, key);
    if (!found || found->empty())
      return error{error_kind::damaged, "part " + std::to_string(part) + " of its record is missing", {}};
    record += *found;
  }
  const auto contents = read_state_record(record);
  if (!contents) return contents.error();
  if (record.size() != entry.bytes || contents->label.key != entry.key)
    return error{error_kind::damaged, "its record is that of another state", {}};
  return record;
}

/// A lost state costs only time: it is recomputed from the session's tokens.
result<void> recovery::states() {
  std::set<state_key> shared;
  for (const auto& [borrower, states] : shares_)
    if (kept_.contains(borrower)) shared.insert(states.begin(), states.end());
  std::set<session_uid> ownerless;
  for (const auto& [key, entry] : index_) {
    if (key.owner != 0 && !kept_.contains(key.owner) && !sessions_.contains(key.owner) && !shared.contains(key))
      ownerless.insert(key.owner);
    if (key.owner != 0 && !kept_.contains(key.owner) && !shared.contains(key)) continue;
    const auto record = record_of(entry);
    if (!record) {
      lost(name_of(key), record.error().message + "; it will be recomputed when needed");
      continue;
    }
    ++(key.owner == 0 ? report_.prefixes : report_.states);
    if (!into_) continue;
    if (const auto put = write_raw_state(*into_, entry, *record); !put) return put;
  }
  for (const session_uid uid : ownerless)
    if (!staged_.contains(uid)) lost(name_of(uid), "only states of it are left: its name and its versions are lost");
  return {};
}

/// Records that belong to no session, or to sessions that were kept. Lost records may contain session numbers that were
/// given out; no log contains this many.
result<void> recovery::rest() {
  for (const auto& [key, value] : running_) {
    if (!kept_.contains(number_at(key, 0))) continue;
    ++report_.running;
    write([&](change_list& changes) { changes.put(family::running, key, value); });
  }
  report_.set_aside = set_aside_.size();
  for (const auto& [key, record] : set_aside_)
    write([&](change_list& changes) { changes.put(family::quarantine, key, encode_set_aside(record)); });
  const std::uint64_t next = std::max(next_uid_, last_uid_ + 1) + (std::uint64_t{1} << 32);
  write([&](change_list& changes) {
    changes.put(family::meta, keys::next_uid, encode_number(record_kind::counter, next));
  });
  return {};
}

}  // namespace skein::storage
