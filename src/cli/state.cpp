#include <algorithm>
#include <cstdio>
#include <fstream>

#include "app/small_file.hpp"
#include "app/state_reading.hpp"
#include "app/state_report.hpp"
#include "app/state_server.hpp"
#include "cli/commands.hpp"
#include "storage/files/folder_owner.hpp"
#include "storage/repair/repair.hpp"
#include "storage/sessions/session_copy.hpp"
#include "storage/sessions/session_file.hpp"
#include "storage/sessions/session_store.hpp"

namespace skein::cli {
namespace {

using storage::session_key;
using storage::session_store;

result<std::string> signature_key(const state_command& what) {
  if (what.key_file.empty()) return std::string();
  auto key = read_small_file(what.key_file);
  if (!key) return key.error();
  while (!key->empty() && (key->back() == '\n' || key->back() == '\r')) key->pop_back();
  if (key->empty())
    return error{error_kind::invalid_argument, what.key_file.string() + " contains no key", "--key-file"};
  return key;
}

result<void> write_file(const std::filesystem::path& path, const std::string& bytes) {
  const std::filesystem::path part = path.string() + ".part";
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  std::error_code failed;
  if (file) std::filesystem::rename(part, path, failed);
  if (file && !failed) return {};
  std::filesystem::remove(part, failed);
  return error{error_kind::io, "cannot write " + path.string(), {}};
}

/// The session file to import, checked.
result<storage::session_file> given_file(const state_command& what, const std::string& key) {
  const auto bytes = read_small_file(what.file);
  if (!bytes) return bytes.error();
  storage::session_file_rules rules;
  rules.signature_key = key;
  rules.bytes_max = bytes->size();  // no limit: a user with write access to this directory can store any amount
  auto file = storage::read_session_file(*bytes, rules);
  if (!file) return error{file.error().kind, what.file.string() + ": " + file.error().message, {}};
  return file;
}

std::string name_for(const storage::session_file& file, const state_command& what) {
  return what.new_id.empty() ? file.session.key.id : what.new_id;
}

result<void> import_session(const state_command& what, const std::string& key, std::string& output) {
  auto file = given_file(what, key);
  if (!file) return file.error();
  const storage::as_owner_of owner(what.state_dir);  // who may not be able to read the file
  const auto db = open_state(what, false);
  if (!db) return db.error();
  session_store store(*db);
  const session_key as{what.tenant, name_for(*file, what)};
  const auto stored = storage::put_in(**db, store, std::move(*file), as, what.replace);
  if (!stored) return stored.error();
  output = printable(as.id) + '\n';
  return {};
}

result<void> remove(const state_command& what) {
  const auto db = open_state(what, false);
  if (!db) return db.error();
  session_store store(*db);
  const session_key key{what.tenant, what.id};
  const auto found = store.find(key);
  if (!found && found.error().kind == error_kind::damaged) return store.forget_damaged(key);
  if (!found) return found.error();
  if (!*found) return error{error_kind::not_found, "there is no session '" + printable(what.id) + "'", {}};
  return store.remove(**found);
}

result<void> fork(const state_command& what) {
  const auto db = open_state(what, false);
  if (!db) return db.error();
  session_store store(*db);
  const auto file = storage::take_out(**db, store, {what.tenant, what.id}, false);
  if (!file) return file.error();
  const auto version = what.version.value_or(file->session.head);
  auto copy = storage::branch(*file, version);
  if (!copy)
    return error{error_kind::not_found,
                 "the session '" + printable(what.id) + "' has no version " + std::to_string(version),
                 {}};
  auto states = storage::stored_states(**db, store, file->session.uid);
  if (!states) return states.error();
  std::erase_if(*states, [&](const storage::state_key& state) {
    return std::ranges::find(copy->versions, version_of(state), &storage::version_record::id) == copy->versions.end();
  });
  const session_key to{what.tenant, what.new_id};
  const auto stored = storage::put_in(**db, store, std::move(*copy), to, false, std::move(*states), file->session.uid);
  if (!stored) return stored.error();
  return {};
}

result<void> compact(const state_command& what) {
  {
    const auto db = open_state(what, false);
    if (!db) return db.error();
    if (const auto done = (*db)->compact(); !done) return done.error();
  }
  // Reopened, because only that removes deleted files from the MANIFEST.
  const auto db = open_state(what, false);
  if (!db) return db.error();
  return {};
}

result<void> backup(const state_command& what) {
  const auto db = open_state(what, false);
  if (!db) return db.error();
  return back_up(**db, what.file);
}

/// With --dry-run, damage is an error, as in verify.
result<void> repair(const state_command& what, std::string& output) {
  const auto report = storage::repair(what.state_dir, what.dry_run);
  if (!report && report.error().kind == error_kind::in_use)
    return error{error_kind::in_use, "a server is running on " + what.state_dir.string() + "; stop it first", {}};
  if (!report) return report.error();
  output = what.json ? repair_json(*report) : repair_text(*report);
  if (!what.dry_run || report->sound()) return {};
  return error{error_kind::damaged, "the database is damaged; run without --dry-run to recover the readable data", {}};
}

result<void> on_directory(const state_command& what, const std::string& key, std::string& output) {
  if (what.action == state_action::import_session) return import_session(what, key, output);
  const storage::as_owner_of owner(what.state_dir);
  switch (what.action) {
    case state_action::remove: return remove(what);
    case state_action::fork: return fork(what);
    case state_action::compact: return compact(what);
    case state_action::backup: return backup(what);
    case state_action::repair: return repair(what, output);
    default: return read_state(what, key, output);
  }
}

/// Runs the action through the server that has the directory open.
result<void> on_server(state_command what, const std::string& key, std::string& output) {
  std::string body = key;
  if (what.action == state_action::import_session) {
    auto file = given_file(what, key);
    if (!file) return file.error();
    what.new_id = name_for(*file, what);
    body = storage::write_session_file(*file, {});
  }
  if (what.action == state_action::backup) what.file = std::filesystem::absolute(what.file);
  return ask_server(what, body, output);
}

}  // namespace

result<void> state(const state_command& what) {
  const auto key = signature_key(what);
  if (!key) return key.error();
  std::string output;
  auto outcome = on_directory(what, *key, output);
  if (!outcome && outcome.error().kind == error_kind::in_use && what.action != state_action::repair)
    outcome = on_server(what, *key, output);
  if (what.action == state_action::export_session) return outcome ? write_file(what.file, output) : outcome;
  std::fwrite(output.data(), 1, output.size(), stdout);
  return outcome;
}

}  // namespace skein::cli
