#include <cstdio>
#include <fstream>

#include "cli/commands.hpp"
#include "cli/small_file.hpp"
#include "cli/state_report.hpp"
#include "storage/session_copy.hpp"
#include "storage/session_file.hpp"
#include "storage/session_store.hpp"

namespace skein::cli {
namespace {

using storage::database;
using storage::session_key;
using storage::session_store;

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

/// Actions that change nothing open the directory so, too.
result<std::shared_ptr<database>> open(const state_command& what, bool read_only) {
  auto opened = database::open({.directory = storage::database_directory(what.state_dir),
                                .create = what.action == state_action::import_session,
                                .read_only = read_only});
  if (!opened && opened.error().kind == error_kind::conflict &&
      opened.error().message.find("in use") != std::string::npos)
    return error{error_kind::conflict,
                 "a server runs on " + what.state_dir.string() + "; stop it first, or ask it over HTTP",
                 {}};
  return opened;
}

result<std::string> signature_key(const state_command& what) {
  if (what.key_file.empty()) return std::string();
  auto key = read_small_file(what.key_file);
  if (!key) return key.error();
  while (!key->empty() && (key->back() == '\n' || key->back() == '\r')) key->pop_back();
  if (key->empty()) return error{error_kind::invalid_argument, what.key_file.string() + " holds no key", "--key-file"};
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

result<void> list(const state_command& what) {
  const auto db = open(what, true);
  if (!db) return db.error();
  session_store store(*db);
  std::vector<storage::session_record> all;
  constexpr std::uint32_t page_sessions = 1000;
  for (;;) {
    auto page = store.list(what.tenant, all.empty() ? "" : all.back().key.id, page_sessions);
    if (!page) return page.error();
    all.insert(all.end(), page->begin(), page->end());
    if (page->size() < page_sessions) break;
  }
  print(what.json ? sessions_json(all) : sessions_text(all));
  return {};
}

result<void> info(const state_command& what) {
  const auto db = open(what, true);
  if (!db) return db.error();
  session_store store(*db);
  const auto file = storage::take_out(**db, store, {what.tenant, what.id}, false);
  if (!file) return file.error();
  const auto stored = storage::stored_versions(**db, file->session.uid);
  if (!stored) return stored.error();
  print((what.json ? session_json : session_text)(file->session, file->versions, *stored));
  return {};
}

result<void> export_session(const state_command& what) {
  const auto key = signature_key(what);
  if (!key) return key.error();
  const auto db = open(what, true);
  if (!db) return db.error();
  session_store store(*db);
  const auto file = storage::take_out(**db, store, {what.tenant, what.id}, what.with_states);
  if (!file) return file.error();
  return write_file(what.file, storage::write_session_file(*file, *key));
}

result<void> import_session(const state_command& what) {
  const auto key = signature_key(what);
  if (!key) return key.error();
  const auto bytes = read_small_file(what.file);
  if (!bytes) return bytes.error();
  storage::session_file_rules rules;
  rules.signature_key = *key;
  rules.bytes_max = bytes->size();  // whoever may write here may write much
  auto file = storage::read_session_file(*bytes, rules);
  if (!file) return error{file.error().kind, what.file.string() + ": " + file.error().message, {}};
  const auto db = open(what, false);
  if (!db) return db.error();
  session_store store(*db);
  const session_key as{what.tenant, what.new_id.empty() ? file->session.key.id : what.new_id};
  const auto stored = storage::put_in(**db, store, std::move(*file), as, what.replace);
  if (!stored) return stored.error();
  print(printable(as.id) + '\n');
  return {};
}

result<void> remove(const state_command& what) {
  const auto db = open(what, false);
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
  const auto db = open(what, false);
  if (!db) return db.error();
  session_store store(*db);
  const auto file = storage::take_out(**db, store, {what.tenant, what.id}, true);
  if (!file) return file.error();
  const auto version = what.version.value_or(file->session.head);
  auto copy = storage::branch(*file, version);
  if (!copy)
    return error{
        error_kind::not_found, "session '" + printable(what.id) + "' has no version " + std::to_string(version), {}};
  const auto stored = storage::put_in(**db, store, std::move(*copy), {what.tenant, what.new_id}, false);
  if (!stored) return stored.error();
  return {};
}

result<void> verify(const state_command& what) {
  const auto db = open(what, true);
  if (!db) return db.error();
  const auto found = storage::verify(**db);
  print(what.json ? verification_json(found) : verification_text(found));
  if (found.damaged_count == 0) return {};
  return error{error_kind::damaged, std::to_string(found.damaged_count) + " records are damaged", {}};
}

result<void> compact(const state_command& what) {
  {
    const auto db = open(what, false);
    if (!db) return db.error();
    if (const auto done = (*db)->compact(); !done) return done.error();
  }
  // Opened once more: only then the list of files forgets the names that were in files which are gone.
  const auto db = open(what, false);
  if (!db) return db.error();
  return {};
}

result<void> backup(const state_command& what) {
  const auto db = open(what, false);
  if (!db) return db.error();
  std::error_code failed;
  if (std::filesystem::exists(what.file, failed))
    return error{error_kind::conflict, what.file.string() + " exists already; a backup makes its directory", {}};
  if (!std::filesystem::create_directories(what.file, failed))
    return error{error_kind::io, "cannot make " + what.file.string() + ": " + failed.message(), {}};
  std::filesystem::permissions(what.file, std::filesystem::perms::owner_all, failed);
  return (*db)->backup(storage::database_directory(what.file));
}

}  // namespace

result<void> state(const state_command& what) {
  switch (what.action) {
    case state_action::list: return list(what);
    case state_action::info: return info(what);
    case state_action::export_session: return export_session(what);
    case state_action::import_session: return import_session(what);
    case state_action::remove: return remove(what);
    case state_action::fork: return fork(what);
    case state_action::verify: return verify(what);
    case state_action::compact: return compact(what);
    case state_action::backup: return backup(what);
  }
  return error{error_kind::internal, "an action without a function", {}};
}

}  // namespace skein::cli
