#include "storage/sessions/session_copy.hpp"

#include <algorithm>

#include "storage/records/session_names.hpp"
#include "storage/records/wall_time.hpp"
#include "storage/states/raw_states.hpp"
#include "storage/states/state_record.hpp"

namespace skein::storage {
namespace {

version_id version_of_record(const std::string& state) {
  const auto contents = read_state_record(state);
  return contents ? static_cast<version_id>(contents->label.key.number) : beginning;
}

/// The record of a stored state, relabelled as this session's own. Its number is only the version: the upper half,
/// which counts failed turns, is 0 in files.
result<std::string> state_of(database& db, const session_record& session, const state_key& key) {
  const auto entry = find_entry(db.internals(), key);
  if (!entry) return entry.error();
  auto record = checked_raw_state(db.internals(), **entry);
  const state_key in_file{session.uid, version_of(key)};
  if (!record || key == in_file) return record;
  const auto contents = read_state_record(*record);
  if (!contents) return contents.error();
  state_label label = contents->label;
  label.key = in_file;
  return relabelled(*contents, label);
}

bool has_version(const session_file& file, version_id version) {
  return std::ranges::any_of(file.versions, [&](const version_record& v) { return v.id == version; });
}

std::vector<version_id> deleted_of(const session_file& file) {
  std::vector<version_id> all;
  for (const auto& version : file.versions)
    if (version.deleted) all.push_back(version.id);
  return all;
}

}  // namespace

result<session_file> take_out(database& db, session_store& store, const session_key& key, bool with_states) {
  const auto session = store.find(key);
  if (!session) return session.error();
  if (!*session) return error{error_kind::not_found, "there is no " + name_of(key), {}};
  session_file file{**session, {}, {}};
  auto versions = store.versions(file.session.uid);
  if (!versions) return versions.error();
  file.versions = std::move(*versions);
  if (!with_states) return file;
  const auto states = stored_states(db, store, file.session.uid);
  if (!states) return states.error();
  for (const auto& one : *states) {
    if (!has_version(file, version_of(one))) continue;
    auto state = state_of(db, file.session, one);
    if (!state) return error{state.error().kind, name_of(one) + ": " + state.error().message, {}};
    file.states.push_back(std::move(*state));
  }
  return file;
}

result<std::vector<state_key>> stored_states(database& db, const session_store& store, session_uid uid) {
  const auto entries = entries_of_session(db.internals(), uid);
  if (!entries) return entries.error();
  std::vector<state_key> stored;
  for (const auto& entry : *entries)
    if (entry.complete) stored.push_back(entry.key);
  for (const auto& key : store.shares().of(uid))
    if (const auto entry = find_entry(db.internals(), key); entry && *entry) stored.push_back(key);
  return stored;
}

std::optional<session_file> branch(const session_file& from, version_id version) {
  session_file way{from.session, {}, {}};
  for (version_id at = version; at != beginning;) {
    const auto found = std::ranges::find(from.versions, at, &version_record::id);
    if (found == from.versions.end() || (at == version && found->deleted)) return {};
    way.versions.push_back(*found);
    at = found->parent;
  }
  std::ranges::reverse(way.versions);
  auto& s = way.session;
  s.head = s.last_version = version;
  s.versions = static_cast<std::uint32_t>(way.versions.size());
  s.total_tokens = way.versions.empty() ? 0 : way.versions.back().total_tokens;
  s.log_bytes = 0;
  for (const auto& v : way.versions) s.log_bytes += content_bytes(v);
  return way;
}

result<session_record> put_in(database& db, session_store& store, session_file file, const session_key& as,
                              bool replace, std::vector<state_key> shared, session_uid fork_of) {
  if (as.id.empty() || as.id.size() > session_id_bytes_max)
    return error{error_kind::invalid_argument,
                 "id: a session's name must have 1 to " + std::to_string(session_id_bytes_max) + " bytes", "id"};
  const auto there = store.find(as);
  if (!there) return there.error();
  if (*there && !replace) return error{error_kind::conflict, name_of(as) + " already exists", {}};
  const auto uid = store.new_uid();
  if (!uid) return uid.error();
  file = readdressed(std::move(file), *uid, as);
  file.session.used_ms = wall_time_ms();
  store.share(*uid, std::move(shared));
  if (fork_of != 0) store.fork(*uid, fork_of, file.session.head, deleted_of(file));
  // The replaced session is removed only after the new one is durable; the name then belongs to the new record.
  if (const auto written = store.commit(file.session, file.versions, true); !written) return written.error();
  for (const auto& state : file.states) {
    const state_key key{*uid, version_of_record(state)};
    if (const auto put = write_raw_state(db.internals(), {key, state.size(), wall_time_ms(), true, {}, {}, {}}, state);
        !put)
      return put.error();
  }
  if (*there)
    if (const auto removed = store.remove_contents(**there); !removed) return removed.error();
  return file.session;
}

}  // namespace skein::storage
