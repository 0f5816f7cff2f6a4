#include "storage/sessions/session_store.hpp"

#include <algorithm>
#include <utility>

#include "storage/database/database_impl.hpp"
#include "storage/database/quarantine.hpp"
#include "storage/records/record_codec.hpp"
#include "storage/records/session_names.hpp"
#include "storage/records/storage_keys.hpp"
#include "storage/sessions/record_scan.hpp"
#include "storage/states/raw_states.hpp"

namespace skein::storage {
namespace {

constexpr std::uint64_t uids_reserved = 1024;  ///< session numbers reserved by one synced write

std::string version_name(session_uid uid, std::string_view key) {
  std::uint32_t version = 0;
  for (std::size_t i = sizeof uid; i < key.size(); ++i) version = version << 8 | static_cast<std::uint8_t>(key[i]);
  return "version " + std::to_string(version) + " of " + name_of(uid);
}

result<session_record> decode_found(std::string_view record, std::string_view key) {
  auto session = decode_session(record);
  if (session && keys::of_session(session->key) != key)
    return error{error_kind::damaged, "it is the record of " + name_of(session->key), {}};
  return session;
}

result<version_record> decode_found(std::string_view record, std::string_view key, session_uid uid) {
  auto version = decode_version(record, uid);
  if (version && keys::of_version(uid, version->id) != key)
    return error{error_kind::damaged, "it is the record of version " + std::to_string(version->id), {}};
  return version;
}

result<std::vector<std::string>> set_aside_of(database::impl& db, session_uid uid) {
  std::vector<std::string> all;
  for (const family of : {family::versions, family::running, family::state_index}) {
    const auto some = keys_below(db, family::quarantine, quarantine_key(of, keys::of_number(uid)));
    if (!some) return some.error();
    all.insert(all.end(), some->begin(), some->end());
  }
  all.push_back(quarantine_key(family::meta, keys::of_fork(uid)));
  return all;
}

}  // namespace

result<std::optional<session_record>> session_store::find(const session_key& key) {
  auto& db = db_->internals();
  const std::string at = keys::of_session(key);
  std::string bytes;
  const auto found = db.read(family::sessions, at, [&](std::string_view value) { bytes = value; });
  if (!found) return found.error();
  if (!*found) {
    if (const auto whole = none_set_aside(db, family::sessions, at, name_of(key), keys_meant::exactly); !whole)
      return whole.error();
    return std::optional<session_record>();
  }
  auto session = decode_found(bytes, at);
  if (session) return std::optional(std::move(*session));
  if (!is_damage(session.error())) return session.error();
  return set_aside(db, family::sessions, at, bytes, name_of(key), session.error());
}

result<std::vector<version_record>> session_store::versions(session_uid uid) {
  auto& db = db_->internals();
  const std::string first = keys::of_number(uid);
  if (const auto whole = none_set_aside(db, family::versions, first, name_of(uid), keys_meant::beginning); !whole)
    return whole.error();
  if (const auto whole = none_set_aside(db, family::meta, keys::of_fork(uid), name_of(uid), keys_meant::exactly);
      !whole)
    return whole.error();
  auto shared = forks_.inherited(uid);
  if (!shared) return shared;
  std::vector<version_record> all = std::move(*shared);
  std::optional<unreadable> bad;
  const auto looked =
      db.scan(family::versions, first, keys::after_all(first), [&](std::string_view key, std::string_view value) {
        if (is_kept(value)) return true;
        auto version = decode_found(value, key, uid);
        if (version)
          all.push_back(std::move(*version));
        else
          bad = unreadable{std::string(key), std::string(value), version.error()};
        return !bad;
      });
  if (!looked) return looked.error();
  if (!bad) return all;
  if (!is_damage(bad->why)) return bad->why;
  return set_aside(db, family::versions, bad->key, bad->record, version_name(uid, bad->key), bad->why);
}

result<std::vector<session_record>> session_store::list(const tenant_id& tenant, std::string_view after,
                                                        std::uint32_t count) {
  auto& db = db_->internals();
  const std::string first = keys::of_tenant(tenant);
  std::vector<session_record> page;
  std::vector<unreadable> bad;
  const auto looked = db.scan(family::sessions, first + std::string(after), keys::after_all(first),
                              [&](std::string_view key, std::string_view value) {
                                if (page.size() >= count) return false;
                                if (key.substr(first.size()) == after) return true;
                                auto session = decode_found(value, key);
                                if (session)
                                  page.push_back(std::move(*session));
                                else if (is_damage(session.error()))
                                  bad.push_back({std::string(key), std::string(value), session.error()});
                                return page.size() < count;
                              });
  if (!looked) return looked.error();
  for (const auto& one : bad)
    (void)set_aside(db, family::sessions, one.key, one.record, name_of({tenant, one.key.substr(first.size())}),
                    one.why);
  return page;
}

result<std::vector<tenant_id>> session_store::tenants() {
  std::vector<tenant_id> all;
  for (std::string first;;) {
    std::string key;
    const auto looked =
        db_->internals().scan(family::sessions, first, {}, [&](std::string_view found, std::string_view) {
          key = found;
          return false;
        });
    if (!looked) return looked.error();
    auto tenant = keys::tenant_of(key);
    if (!tenant) return all;  // after the last tenant
    first = keys::after_all(keys::of_tenant(*tenant));
    all.push_back(std::move(*tenant));
    if (first.empty()) return all;
  }
}

result<tenant_amounts> session_store::amounts() {
  tenant_amounts all;
  const auto looked =
      db_->internals().scan(family::sessions, {}, {}, [&](std::string_view key, std::string_view value) {
        if (const auto session = decode_found(value, key)) {
          stored_amount& amount = all[session->key.tenant];
          amount = amount + amount_of(*session);
        }
        return true;
      });
  if (!looked) return looked.error();
  return all;
}

result<session_uid> session_store::new_uid() {
  if (next_uid_ < reserved_uids_end_) return next_uid_++;
  const auto first = db_->internals().take_session_numbers(uids_reserved);
  if (!first) return first.error();
  next_uid_ = *first;
  reserved_uids_end_ = *first + uids_reserved;
  return next_uid_++;
}

result<void> session_store::commit(const session_record& session, std::span<const version_record> versions, bool sync,
                                   std::span<const version_id> refused) {
  return commit_each(
      session, [&](const auto& use) { std::ranges::for_each(versions, use); }, sync, refused, 0);
}

result<void> session_store::commit_shared(const session_record& session, std::span<const shared_version> versions,
                                          bool sync, std::span<const version_id> refused, session_uid replaced) {
  const auto each = [&](const auto& use) {
    for (const auto& version : versions) use(*version);
  };
  return commit_each(session, each, sync, refused, replaced);
}

result<void> session_store::commit_each(const session_record& session, const each_version& versions, bool sync,
                                        std::span<const version_id> refused, session_uid replaced) {
  const version_id shared = forks().inherited(session.uid);
  return write_session(session, replaced, sync ? safety::synced : safety::logged, [&](change_list& changes) {
    for (const version_id number : refused) changes.erase(family::versions, keys::of_version(session.uid, number));
    versions([&](const version_record& version) {  // also under the number of another turn that failed
      if (version.id <= shared) return;
      const std::string at = keys::of_version(session.uid, version.id);
      changes.put(family::versions, at, encode_version(session.uid, version));
      changes.erase(family::running, at);
    });
  });
}

result<void> session_store::rewrite(const session_record& session) {
  return write_session(session, 0, safety::logged, [](change_list&) {});
}

result<void> session_store::commit_staged(const session_record& session, session_uid replaced) {
  return write_session(session, replaced, safety::logged,
                       [&](change_list& changes) { changes.erase(family::meta, keys::of_staged(session.uid)); });
}

result<void> session_store::write_session(const session_record& session, session_uid replaced, safety how,
                                          const std::function<void(change_list&)>& more) {
  result<std::vector<std::string>> notes = std::vector<std::string>();
  result<version_forks::leaving> gone = version_forks::leaving();
  if (replaced != 0) {
    gone = forks_.leave(replaced);
    if (!gone) return gone.error();
    notes = notes_.keys_of(replaced);
    if (!notes) return notes.error();
  }
  const auto written = db_->internals().write(how, [&](change_list& changes) {
    more(changes);
    if (replaced != 0) forks_.add_to(changes, *gone);
    for (const auto& key : *notes) changes.erase(family::running, key);
    changes.put(family::sessions, keys::of_session(session.key), encode_session(session));
    states_.add_to(changes, session.uid);
    forks_.add_to(changes, session.uid);
  });
  if (replaced != 0) forks_.left(*gone, written.has_value());
  if (!written) return written;
  states_.added(session.uid);
  forks_.added(session.uid);
  if (replaced != 0) forks_.trim();
  return written;
}

result<void> session_store::drop_staged() {
  const std::string first(keys::staged_prefix);
  const auto staged = keys_below(db_->internals(), family::meta, first);
  if (!staged) return staged.error();
  for (const auto& key : *staged)
    if (auto dropped = unstage_versions(*db_, keys::number_at(key, first.size())); !dropped) return dropped;
  return {};
}

result<void> stage_versions(database& db, session_uid uid, std::span<const shared_version> versions) {
  constexpr std::size_t piece_bytes = 256 << 10;  // a few ms
  auto& inside = db.internals();
  if (auto marked = inside.write(safety::logged,
                                 [&](change_list& changes) { changes.put(family::meta, keys::of_staged(uid), {}); });
      !marked)
    return marked;
  for (auto at = versions.begin(); at != versions.end();) {
    const auto written = inside.write(safety::logged, [&](change_list& changes) {
      for (std::size_t bytes = 0; at != versions.end() && bytes < piece_bytes; ++at) {
        const std::string record = encode_version(uid, **at);
        changes.put(family::versions, keys::of_version(uid, (*at)->id), record);
        bytes += record.size();
      }
    });
    if (!written) return written;
  }
  return {};
}

result<void> unstage_versions(database& db, session_uid uid) {
  const auto versions = keys_below(db.internals(), family::versions, keys::of_number(uid));
  if (!versions) return versions.error();
  return db.internals().write(safety::logged, [&](change_list& changes) {
    for (const auto& key : *versions) changes.erase(family::versions, key);
    changes.erase(family::meta, keys::of_staged(uid));
  });
}

result<void> session_store::remove(const session_record& session) { return remove(session, true); }
result<void> session_store::remove_contents(const session_record& session) { return remove(session, false); }

result<void> session_store::remove(const session_record& session, bool with_record) {
  auto& db = db_->internals();
  const std::string first = keys::of_number(session.uid);
  // First, because this sets damaged entries aside; their states are then found by their parts.
  const auto states = states_.going(
      session.uid, [](version_id) { return true; }, forks_);
  if (!states) return states.error();
  const auto gone = forks_.leave(session.uid);
  if (!gone) return gone.error();
  const auto notes = notes_.keys_of(session.uid);
  if (!notes) return notes.error();
  result<std::vector<std::string>> set_aside = std::vector<std::string>(), parts = std::vector<std::string>();
  if (db.records_set_aside > 0) {
    set_aside = set_aside_of(db, session.uid);
    if (!set_aside) return set_aside.error();
    parts = keys_below(db, family::states, first);
    if (!parts) return parts.error();
    std::erase_if(*parts, [&](const std::string& key) {
      return shares().borrowed({session.uid, keys::number_at(key, sizeof session.uid)});
    });
  }
  const auto removed = db.write(safety::logged, [&](change_list& changes) {
    if (with_record) changes.erase(family::sessions, keys::of_session(session.key));
    for (const auto& key : *notes) changes.erase(family::running, key);
    forks_.add_to(changes, *gone);
    for (const auto& entry : *states) erase_state(changes, entry);
    for (const auto& key : *parts) changes.erase(family::states, key);
    for (const auto& key : *set_aside) changes.erase(family::quarantine, key);
    states_.erase_from(changes, session.uid);
  });
  forks_.left(*gone, removed.has_value());
  states_.erased(session.uid, removed.has_value());
  if (!removed) return removed;
  forks_.trim();
  return removed;
}

result<void> session_store::remove_versions(const session_record& session, std::span<const version_id> gone,
                                            std::span<const version_record> marked) {
  const auto goes = [&](version_id version) {
    return std::ranges::find(gone, version) != gone.end() ||
           std::ranges::find(marked, version, &version_record::id) != marked.end();
  };
  const auto states = states_.going(session.uid, goes, forks_);
  if (!states) return states.error();
  auto shared = states_.without(session.uid, goes);
  const auto less = forks_.drop(session.uid, gone, marked);
  if (!less) return less.error();
  const auto removed = db_->internals().write(safety::logged, [&](change_list& changes) {
    forks_.add_to(changes, *less);
    for (const auto& version : marked)
      if (version.id > forks().inherited(session.uid))
        changes.put(family::versions, keys::of_version(session.uid, version.id), encode_version(session.uid, version));
    changes.put(family::sessions, keys::of_session(session.key), encode_session(session));
    for (const auto& entry : *states) erase_state(changes, entry);
    states_.add_to(changes, session.uid, shared);
  });
  forks_.dropped(*less, removed.has_value());
  states_.dropped(session.uid, std::move(shared), removed.has_value());
  if (!removed) return removed;
  forks_.trim();
  return removed;
}

result<void> session_store::forget_damaged(const session_key& key) {
  return db_->internals().write(safety::logged, [&](change_list& changes) {
    changes.erase(family::quarantine, quarantine_key(family::sessions, keys::of_session(key)));
  });
}

}  // namespace skein::storage
