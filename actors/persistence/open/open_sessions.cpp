#include "actors/persistence/open/open_sessions.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/log/log.hpp"
#include "storage/records/stop_reasons.hpp"
#include "storage/sessions/session_store.hpp"

namespace skein::persistence {
namespace {

constexpr std::size_t id_bytes_max = 256;

}  // namespace

void open_sessions::begin() {
  if (auto amounts = log_.store().amounts(); amounts)
    quota_.begin_with(std::move(*amounts));
  else
    log::error("stored sessions cannot be counted; tenant limits count only sessions of this process",
               {{"why", amounts.error().message}});
}

void open_sessions::know_stored_tenants() {
  if (auto tenants = log_.store().tenants(); tenants) tenants_.insert(tenants->begin(), tenants->end());
}

result<open_entry*> open_sessions::entry_of(const session_key& key) {
  if (key.id.empty() || key.id.size() > id_bytes_max)
    return error{error_kind::invalid_argument, "session_id must have 1 to 256 bytes", "session_id"};
  tenants_.insert(key.tenant);
  if (open_entry* known = book_.find(key)) return known;
  open_entry fresh;
  fresh.key = key;
  if (auto ok = restore(fresh); !ok) {
    if (ok.error().kind == error_kind::damaged) {
      counters_.damaged.fetch_add(1, std::memory_order_relaxed);
      log::error("a stored session is damaged", {{"why", ok.error().message}});
    }
    return ok.error();
  }
  if (fresh.tree) fresh.stored = storage::amount_of(fresh.tree->record());
  open_entry& entry = book_.add(std::move(fresh));
  if (entry.tree) {
    recover_running(entry);
    states_.set_head(entry.uid, entry.tree->record().head, entry.tree->broken_last());
  }
  return &entry;
}

result<std::vector<session_record>> open_sessions::all(const tenant_id& tenant, std::string_view after,
                                                       std::uint32_t count) {
  auto page = log_.store().list(tenant, after, count + book_.leases());  // provisional ones are left out below
  if (!page) return page.error();
  for (auto& record : *page)
    if (const open_entry* entry = book_.find(record.uid); entry && entry->tree) record = entry->tree->record();
  for (auto& record : log_.unsaved_records()) {
    const auto same = [&](const session_record& r) { return r.uid == record.uid; };
    if (record.key.tenant == tenant && record.key.id > after && std::ranges::none_of(*page, same))
      page->push_back(std::move(record));
  }
  std::erase_if(*page, [&](const session_record& r) {
    const open_entry* entry = book_.find(r.uid);
    return entry && entry->provisional();
  });
  std::ranges::sort(*page, {}, [](const session_record& r) { return r.key.id; });
  if (page->size() > count) page->resize(count);
  return page;
}

void open_sessions::recount(open_entry& entry) {
  book_.recount(entry);
  const stored_amount now = entry.tree ? storage::amount_of(entry.tree->record()) : stored_amount{};
  quota_.replace(entry.key.tenant, entry.stored, now);
  entry.stored = now;
}

void open_sessions::made(open_entry& entry) {
  entry.in_log = true;
  book_.numbered(entry);
  recount(entry);
}

void open_sessions::distrust(open_entry& entry, bool versions_too, version_id refused) {
  std::vector<shared_version> all;
  if (versions_too) all = entry.tree->all();
  log_.distrust(entry.tree->record(), all, refused);
  entry.unsaved = log_.has_unsaved(entry.uid);
}

result<void> open_sessions::restore(open_entry& entry) {
  auto record = log_.store().find(entry.key);
  if (!record) return record.error();
  if (!*record) return {};
  auto versions = log_.store().versions((*record)->uid);
  if (!versions) return versions.error();
  auto tree = session_tree::restore(std::move(**record), std::move(*versions));
  if (!tree) return tree.error();
  entry.hold(std::move(*tree));
  entry.in_log = true;
  return {};
}

/// Turns the answers that a crash interrupted into unfinished versions; the head stays.
void open_sessions::recover_running(open_entry& entry) {
  auto running = log_.store().running(entry.uid);
  if (!running) {
    log::warning("an interrupted answer cannot be recovered", {{"why", running.error().message}});
    return;
  }
  if (running->empty()) return;
  for (auto& turn : *running)
    if (!recover(entry, std::move(turn.so_far))) return;
  log_.forget_running(entry.uid);  // notes that became no version, and those of older programs
}

/// False: neither disk nor memory can take it.
bool open_sessions::recover(open_entry& entry, version_record v) {
  const session_tree& tree = *entry.tree;
  if (v.tokens.empty() || v.id <= v.parent || tree.has(v.id) || !tree.has(v.parent)) return true;
  const history_hash history = v.history;
  const std::uint64_t segment_bytes = v.segment_bytes;
  v.unfinished = true;
  v.finish_reason = "length";
  v.stop_reason = storage::cut_by_crash;
  tree.place(v, {});
  v.history = history;
  v.segment_bytes = segment_bytes;
  const std::int64_t now_ms = ports_.wall();
  const auto whole = std::make_shared<const version_record>(std::move(v));
  if (!log_.commit(tree.record_with(*whole, now_ms), {&whole, 1}, durability::process, ports_.time.now())) {
    distrust(entry, false, whole->id);
    return false;
  }
  entry.unsaved = log_.has_unsaved(entry.uid);
  entry.tree->add(whole, now_ms);
  recount(entry);
  return true;
}

}  // namespace skein::persistence
