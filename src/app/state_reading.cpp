#include "app/state_reading.hpp"

#include <utility>
#include <vector>

#include "app/state_report.hpp"
#include "storage/sessions/session_copy.hpp"
#include "storage/sessions/session_file.hpp"
#include "storage/sessions/session_store.hpp"

namespace skein::cli {
namespace {

using storage::session_store;

result<void> list(const state_command& what, std::string& output) {
  const auto db = open_state(what, true);
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
  output = what.json ? sessions_json(all) : sessions_text(all);
  if (what.json) return {};
  if (!all.empty()) {
    const auto amounts = store.amounts();
    if (!amounts) return amounts.error();
    output += amounts_text(*amounts);
    return {};
  }
  const auto tenants = store.tenants();
  if (!tenants) return tenants.error();
  output = "no sessions of tenant '" + printable(what.tenant) + "'";
  const char* before = "; tenants with sessions (--tenant): ";
  for (const auto& tenant : *tenants) output.append(std::exchange(before, ", ")).append(printable(tenant));
  output += '\n';
  return {};
}

result<void> info(const state_command& what, std::string& output) {
  const auto db = open_state(what, true);
  if (!db) return db.error();
  session_store store(*db);
  const auto file = storage::take_out(**db, store, {what.tenant, what.id}, false);
  if (!file) return file.error();
  const auto stored = storage::stored_states(**db, store, file->session.uid);
  if (!stored) return stored.error();
  output = (what.json ? session_json : session_text)(file->session, file->versions, *stored);
  return {};
}

result<void> export_session(const state_command& what, const std::string& signature_key, std::string& output) {
  const auto db = open_state(what, true);
  if (!db) return db.error();
  session_store store(*db);
  const auto file = storage::take_out(**db, store, {what.tenant, what.id}, what.with_states);
  if (!file) return file.error();
  output = storage::write_session_file(*file, signature_key);
  return {};
}

result<void> verify(const state_command& what, std::string& output, const std::stop_token& stop) {
  const auto db = open_state(what, true);
  if (!db) return db.error();
  const auto found = storage::verify(**db, stop);
  if (!found) return found.error();
  output = what.json ? verification_json(*found) : verification_text(*found);
  if (found->damaged_count == 0) return {};
  return error{error_kind::damaged, std::to_string(found->damaged_count) + " records are damaged", {}};
}

}  // namespace

std::string_view name_of(state_action action) {
  switch (action) {
    case state_action::list: return "list";
    case state_action::info: return "info";
    case state_action::export_session: return "export";
    case state_action::import_session: return "import";
    case state_action::remove: return "delete";
    case state_action::fork: return "fork";
    case state_action::verify: return "verify";
    case state_action::compact: return "compact";
    case state_action::backup: return "backup";
    case state_action::repair: return "repair";
  }
  return "unknown";
}

result<std::shared_ptr<storage::database>> open_state(const state_command& what, bool read_only) {
  auto opened = storage::database::open({.directory = storage::database_directory(what.state_dir),
                                         .create = what.action == state_action::import_session,
                                         .read_only = read_only});
  if (!opened) return with_repair_named(opened.error(), what.state_dir);
  return opened;
}

error with_repair_named(error why, const std::filesystem::path& state_dir) {
  std::error_code unknown;
  const bool is_there = std::filesystem::exists(storage::database_directory(state_dir), unknown);
  // RocksDB reports a missing or unreadable file as an I/O error.
  const bool of_files =
      why.kind == error_kind::io || (why.kind == error_kind::missing_file && why.message.starts_with("opening "));
  if (why.kind == error_kind::damaged || (of_files && is_there))
    why.message += "; skein state repair --state-dir " + state_dir.string() + " recovers the readable data";
  return why;
}

result<void> back_up(storage::database& db, const std::filesystem::path& into) {
  std::error_code failed;
  if (std::filesystem::exists(into, failed))
    return error{error_kind::conflict, into.string() + " already exists; a backup needs a new directory", {}};
  if (!std::filesystem::create_directories(into, failed))
    return error{error_kind::io,
                 "cannot create " + into.string() + ": " + failed.message() +
                     "; the user of the server must be able to write there",
                 {}};
  std::filesystem::permissions(into, std::filesystem::perms::owner_all, failed);
  return db.backup(storage::database_directory(into));
}

result<void> read_state(const state_command& what, const std::string& signature_key, std::string& output,
                        const std::stop_token& stop) {
  switch (what.action) {
    case state_action::list: return list(what, output);
    case state_action::info: return info(what, output);
    case state_action::export_session: return export_session(what, signature_key, output);
    case state_action::verify: return verify(what, output, stop);
    default: return error{error_kind::internal, "the action is not read-only", {}};
  }
}

}  // namespace skein::cli
