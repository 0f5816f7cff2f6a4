// Administration of sessions: lists, descriptions, forks, rollback, removal, and periodic work.
#include <algorithm>
#include <chrono>
#include <utility>

#include "actors/persistence/keeper/named_version.hpp"
#include "actors/persistence/keeper/session_keeper.hpp"
#include "base/log/log.hpp"
#include "storage/sessions/session_store.hpp"

namespace skein::persistence {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t page_max = 1000;            // sessions of one list
constexpr std::uint32_t report_max = 10'000;        // sessions of one report of tiers
constexpr std::uint32_t fork_in_memory_max = 1000;  // versions; a fork with more is read from the log when it is used
constexpr auto check_pause = 20ms;                  // between checks of deadlines, while turns run or wait
constexpr auto age_check_pause = 60s;
constexpr std::uint32_t age_page = 200;                       // sessions whose age is checked in one tick
constexpr std::uint64_t age_bytes = 16u << 20;                // log bytes of expired sessions loaded in one tick
constexpr auto clock_slack = std::chrono::milliseconds(60s);  // drift between wall and steady clock from check to check
constexpr auto clock_patience = 1h;

error unknown(const session_key& key) {
  return {error_kind::not_found, "there is no session '" + key.id + "'", "session_id"};
}
error unknown(const session_key& key, version_id version) {
  return {error_kind::not_found, "the session '" + key.id + "' has no version " + std::to_string(version), "version"};
}
error unknown_turn(const std::string& key) { return {error_kind::not_found, "there is no turn '" + key + "'", ""}; }
error busy() { return {error_kind::conflict, "session busy", "session_id"}; }

/// Memory of a session in a list.
std::size_t record_bytes(const session_record& r) { return sizeof(listed_session) + label_bytes(r); }
std::size_t record_bytes(const std::vector<session_record>& records) {
  std::size_t bytes = 0;
  for (const auto& r : records) bytes += record_bytes(r);
  return bytes;
}

/// The number of leading records that fit into `bytes_max`; at least one.
std::size_t fitting(const std::vector<session_record>& records, std::size_t bytes_max) {
  std::size_t count = 0, bytes = 0;
  while (count < records.size()) {
    bytes += record_bytes(records[count]);
    if (bytes > bytes_max && count > 0) break;
    ++count;
  }
  return count;
}

constexpr std::size_t version_answer_bytes = 16;  // texts are shared with the session

/// Reserves memory for an answer of `bytes`. Errors: those of no_room.
template <typename Question>
result<byte_budget::lease> room_for(const Question& q, std::size_t bytes) {
  auto why = byte_share::outcome::taken;
  if (auto lease = q.share.lease(bytes, why)) return lease;
  return no_room(why, bytes, q.share.most());
}

}  // namespace

// ---------------------------------------------------------------- queries

listed_session session_keeper::listed(session_record of) const {
  listed_session out{std::move(of), tier::none, 0};
  const session_record& record = out.record;
  if (record.head == storage::beginning) return out;
  if (const auto key = state_of(record.uid, record.head)) {
    out.fastest = tiers_.cache().fastest(*key);
    const auto model = ports_.states->models().find(record.model_identity);
    out.state_bytes = model ? model->layout.bytes() : 0;
  }
  return out;
}

/// Sessions by id: those of the log, replaced by newer records in memory, and those that are only in memory.
result<std::vector<session_record>> session_keeper::all_sessions(const tenant_id& tenant, std::string_view after,
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
    return entry && entry->provisional;
  });
  std::ranges::sort(*page, {}, [](const session_record& r) { return r.key.id; });
  if (page->size() > count) page->resize(count);
  return page;
}

void session_keeper::handle(list_sessions&& q) {
  const std::uint32_t count = std::clamp<std::uint32_t>(q.count, 1, page_max);
  auto page = all_sessions(q.tenant, q.after, count + 1);
  if (!page) return refuse(q.reply, page.error());
  session_list list;
  list.more = page->size() > count;
  if (list.more) page->resize(count);
  if (const std::size_t fit = fitting(*page, q.bytes_max); fit < page->size()) {
    list.more = true;
    page->resize(fit);
  }
  auto memory = room_for(q, 2 * record_bytes(*page));  // as records and as JSON
  if (!memory) return refuse(q.reply, memory.error());
  for (auto& record : *page) list.sessions.push_back(listed(std::move(record)));
  deliver(answer{q.reply, std::move(list), std::move(*memory)});
}

void session_keeper::handle(tiers_status&& q) {
  auto all = all_sessions(q.tenant, {}, report_max);
  if (!all) return refuse(q.reply, all.error());
  for (auto& record : *all) {
    record.metadata = {};
    record.title = {};
  }
  auto memory = room_for(q, record_bytes(*all));
  if (!memory) return refuse(q.reply, memory.error());
  std::ranges::sort(*all, std::greater{}, &session_record::used_ms);
  tiers_report report;
  for (auto& record : *all) report.sessions.push_back(listed(std::move(record)));
  const auto counts = tiers_.cache().count();
  report.vram = counts.vram;
  report.ram = counts.ram;
  report.disk = counts.disk;
  deliver(answer{q.reply, std::move(report), std::move(*memory)});
}

void session_keeper::handle(describe_session&& q) {
  const auto named = find_named(q.session, [this](const session_key& key) { return entry_of(key); });
  if (!named) return refuse(q.reply, named.error());
  if (!*named) return refuse(q.reply, unknown(q.session));
  const session_tree& tree = (*named)->tree();
  const version_id version = q.version.value_or(tree.record().head);
  if (!tree.offers(version)) return refuse(q.reply, unknown(q.session, version));
  session_description description{listed(tree.record()), {}};
  if (!q.turn.empty()) {
    auto v = tree.with_request_key(q.turn);
    if (!v) return refuse(q.reply, unknown_turn(q.turn));
    description.versions.push_back(std::move(v));
  } else {
    description.versions = q.transcript ? tree.path(version) : tree.all();
  }
  auto memory = room_for(q, version_answer_bytes * description.versions.size());
  if (!memory) return refuse(q.reply, memory.error());
  deliver(answer{q.reply, std::move(description), std::move(*memory)});
}

// ---------------------------------------------------------------- changes

/// A fork with many versions is only loaded into memory when it is used.
void session_keeper::handle(fork_session&& q) {
  const auto from = find_place(q.from, [this](const session_key& key) { return entry_of(key); });
  if (!from) return refuse(q.reply, from.error());
  if (!*from) return refuse(q.reply, unknown(q.from));
  const open_entry& origin = *(*from)->entry;
  const version_id end = (*from)->end.value_or(origin.tree->record().head);
  const version_id version = q.version.value_or(end);
  if (!origin.tree->offers(version) || ((*from)->end && !origin.tree->ways().leads_to(version, end)))
    return refuse(q.reply, unknown(q.from, version));
  const auto target = free_for_fork(q.to);
  if (!target) return refuse(q.reply, target.error());
  open_entry& entry = **target;
  const session_record record = begin_fork(origin, version, q.to);
  std::optional<session_tree> tree;
  if (record.versions <= fork_in_memory_max || !log_.store().forks().of(record.uid) || entry.needed())
    tree = forked(*origin.tree, version, {record.uid, q.to}, record.created_ms);
  auto ok = quota_.allows(q.to.tenant, {}, storage::amount_of(record));
  if (ok) ok = log_.commit_to_disk(record, tree ? tree->all() : std::vector<shared_version>(), ports_.time.now());
  if (!ok) {
    unshare(record.uid);
    log_.disown(record);
    return refuse(q.reply, ok.error());
  }
  shelve(record);
  if (tree) {
    entry.uid = record.uid;
    entry.tree = std::move(tree);
    entry.in_log = true;
    book_.numbered(entry);
    recount(entry);
  } else {
    quota_.replace(q.to.tenant, {}, storage::amount_of(record));
    book_.forget(entry);
  }
  deliver(answer{q.reply, done{record}});
  trim_shelf();
}

/// The entry of a name that is free. Errors: conflict if a session has it or is about to.
result<open_entry*> session_keeper::free_for_fork(const session_key& name) {
  auto to = entry_of(name);
  if (to && ((*to)->tree || (*to)->busy()))
    return error{error_kind::conflict, "session '" + name.id + "' already exists", "to"};
  return to;
}

void session_keeper::handle(rollback_session&& q) {
  auto found = entry_of(q.session);
  if (!found) return refuse(q.reply, found.error());
  open_entry& entry = **found;
  if (!entry.tree || entry.provisional) return refuse(q.reply, unknown(q.session));
  if (entry.busy()) return refuse(q.reply, busy());
  if (!entry.tree->offers(q.version)) return refuse(q.reply, unknown(q.session, q.version));
  session_record after = entry.tree->record();
  after.head = q.version;
  after.total_tokens = entry.tree->total_tokens(q.version);
  after.used_ms = ports_.wall();
  if (const auto written = log_.rewrite(after, ports_.time.now()); !written) {
    distrust(entry, false);
    return refuse(q.reply, written.error());
  }
  entry.tree->set_head(q.version, after.used_ms);
  tiers_.cache().set_head(entry.uid, q.version);
  deliver(answer{q.reply, done{entry.tree->record()}});
}

// ---------------------------------------------------------------- removal

struct session_keeper::removal {
  answer_to to;
  std::vector<session_key> gone;
  std::uint32_t freed = 0;  // damaged sessions, already removed
  bool answered = true;     // a client waits for the reply
};

void session_keeper::handle(remove_session&& q) {
  if (!q.turn.empty()) {
    const auto entry = entry_of(q.session);
    const auto v = entry && (*entry)->tree ? (*entry)->tree->with_request_key(q.turn) : nullptr;
    return v ? remove_branch(q, **entry, v->id) : refuse(q.reply, unknown_turn(q.turn));
  }
  removal r{q.reply, {}, 0, true};
  std::vector<session_key> keys{q.session};
  if (q.with_prefix) {
    const std::string prefix = q.session.id + ':';
    keys.push_back({q.session.tenant, prefix});
    for (std::string after = prefix; after.starts_with(prefix);) {
      auto page = all_sessions(q.session.tenant, after, page_max);
      if (!page) return refuse(q.reply, page.error());
      if (page->empty()) break;
      after = page->back().key.id;
      for (auto& record : *page)
        if (record.key.id.starts_with(prefix)) keys.push_back(std::move(record.key));
    }
  }
  if (const auto branch = branch_named(q.session); branch && !q.with_prefix) {
    const auto own = entry_of(q.session);
    const auto origin = own && !(*own)->tree ? entry_of(branch->first) : own;
    if (own && origin && *own != *origin && (*origin)->tree && !(*origin)->provisional &&
        (*origin)->tree->offers(branch->second))
      return remove_branch(q, **origin, branch->second);
  }
  for (const auto& key : keys) {
    auto entry = entry_of(key);
    if (!entry && entry.error().kind == error_kind::damaged) {
      if (auto ok = erase_damaged(key); !ok) return refuse(q.reply, ok.error());
      ++r.freed;
      continue;
    }
    if (!entry) return refuse(q.reply, entry.error());
    if ((*entry)->busy()) return refuse(q.reply, busy());
    if ((*entry)->tree) r.gone.push_back(key);
  }
  if (r.gone.empty() && r.freed == 0 && !q.with_prefix) return refuse(q.reply, unknown(q.session));
  begin_removal(std::move(r));
}

/// Removes an unreadable session, as far as its parts can be identified.
result<void> session_keeper::erase_damaged(const session_key& key) {
  const auto record = log_.store().find(key);
  if (!record && record.error().kind != error_kind::damaged) return record.error();
  if (!record || !*record) return log_.store().forget_damaged(key);
  forget_states((*record)->uid);  // the record is readable, its versions are damaged
  auto erased = erase(**record);
  if (erased) quota_.replace(key.tenant, storage::amount_of(**record), {});
  return erased;
}

/// Removes version 1 of "a" for the name "a:1" if no session has that name. Versions that continue it keep their texts.
/// Removing the last version removes the session.
void session_keeper::remove_branch(const remove_session& q, open_entry& entry, version_id version) {
  if (entry.busy()) return refuse(q.reply, busy());
  const auto r = entry.tree->removal_of(version, ports_.wall());
  if (r.record.versions == 0) return begin_removal({q.reply, {entry.key}, 0, true});
  entry.removing = true;
  const auto key = tiers_.cache().find(entry.uid, version);
  if (key && !log_.store().shares().borrowed(*key)) tiers_.cache().forget(*key);
  std::erase_if(entry.expected, [&](const auto& one) { return version_of(one.first) == version; });
  forget_slots(entry.uid);
  // Runs after a pending write of the state.
  ports_.runner.run([this, to = q.reply, owner = entry.uid, version]() -> aftermath {
    return [this, to, owner, version] { finish_branch(to, owner, version); };
  });
}

void session_keeper::finish_branch(answer_to to, session_uid owner, version_id version) {
  open_entry& entry = *book_.find(owner);
  entry.removing = false;
  const auto r = entry.tree->removal_of(version, ports_.wall());
  auto shared = log_.store().shares().of(owner);
  std::erase_if(shared, [&](const state_key& state) { return version_of(state) != version; });
  const auto last = log_.store().last_held(owner, shared);
  const auto removed_it = last ? log_.remove_versions(r, ports_.time.now()) : result<void>(last.error());
  if (removed_it) {
    forget_shared(*last);
    entry.tree->remove(r);
    tiers_.cache().set_head(entry.uid, entry.tree->record().head);
    recount(entry);
    shelve(entry.tree->record());
    ++sessions_removed_;
    deliver(answer{to, removed{1}});
  } else {
    distrust(entry, true);
    refuse(to, removed_it.error());
  }
  advance(entry);
}

/// Drops the states from memory at once, so that no further write starts, and waits for pending writes: else a state
/// could be written after its session was removed.
void session_keeper::begin_removal(removal r) {
  for (const auto& key : r.gone) {
    open_entry& entry = *book_.find(key);
    entry.removing = true;
    forget_states(entry.uid);
    std::erase_if(entry.expected, [&](const auto& one) { return !log_.store().shares().borrowed(one.first); });
  }
  ports_.runner.run([this, r = std::move(r)]() -> aftermath { return [this, r] { finish_removal(r); }; });
}

void session_keeper::finish_removal(const removal& r) {
  std::optional<error> trouble;
  std::uint32_t count = r.freed;
  for (const auto& key : r.gone) {
    open_entry& entry = *book_.find(key);
    entry.removing = false;
    const auto removed = trouble ? result<void>(*trouble) : erase(entry.tree->record());
    if (removed) {
      unshelve(entry.uid);
      forget_content(entry);
      ++sessions_removed_;
      ++count;
    } else {
      if (!trouble) distrust(entry, true);
      trouble = removed.error();
    }
  }
  if (r.answered && trouble) refuse(r.to, *trouble);
  if (r.answered && !trouble) deliver(answer{r.to, removed{count}});
  for (const auto& key : r.gone) advance(*book_.find(key));
}

void session_keeper::forget_slots(session_uid gone) {
  if (ports_.forget_slots && !ports_.forget_slots(gone)) unforgotten_.push_back(gone);
}

void session_keeper::repeat_forget() {
  for (const session_uid gone : std::exchange(unforgotten_, {})) forget_slots(gone);
}

/// Flushes the database after removals: deleted data takes space until the deletions are in files too.
void session_keeper::give_back_space() {
  const std::uint64_t removals = sessions_removed_ + tiers_.moves().removals;
  if (!disk_works() || std::exchange(removals_flushed_, removals) == removals) return;
  ports_.runner.run([db = ports_.db]() -> aftermath {
    ignore(db->flush(), "the next write reports the failure");
    return [] {};
  });
}

/// After a jump of the wall clock, waits for clock_patience before trusting it: removals cannot be undone.
bool session_keeper::clock_is_sound(steady_time now) {
  const std::int64_t ms = ports_.wall();
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(now - last_look_.at).count();
  const std::int64_t off = ms - (last_look_.ms + passed);
  if (last_look_.ms != 0 && std::abs(off) > clock_slack.count()) clock_sound_from_ = now + clock_patience;
  last_look_ = {now, ms};
  return now >= clock_sound_from_;
}

/// Removes some of the sessions that were unused for too long, starting where the last call stopped.
void session_keeper::age_out() {
  const std::int64_t oldest = ports_.wall() - static_cast<std::int64_t>(options_.sessions.session_age_max_s * 1000);
  removal r;
  r.answered = false;
  std::uint32_t left = age_page;
  std::uint64_t bytes = 0;
  while (aging_ && left > 0 && bytes < age_bytes) {
    const auto tenant = tenants_.lower_bound(aging_->tenant);
    if (tenant == tenants_.end() || log_.failing()) {
      aging_.reset();
      break;
    }
    if (*tenant != aging_->tenant) aging_ = session_key{*tenant, {}};
    const auto page = all_sessions(*tenant, aging_->id, left);
    if (!page) return aging_.reset();
    left -= static_cast<std::uint32_t>(page->size());
    if (page->empty()) aging_ = session_key{*tenant + '\0', {}};  // the next one
    for (auto record = page->begin(); record != page->end() && bytes < age_bytes; ++record) {
      aging_ = record->key;
      if (record->used_ms > oldest) continue;
      bytes += record->log_bytes;  // the session is loaded to be removed
      const auto entry = entry_of(record->key);
      if (entry && (*entry)->tree && !(*entry)->needed()) r.gone.push_back(record->key);
    }
  }
  if (r.gone.empty()) return;
  log::info("expired sessions are removed", {{"sessions", static_cast<std::uint64_t>(r.gone.size())}});
  begin_removal(std::move(r));
}

// ---------------------------------------------------------------- the memory limit without a disk

void session_keeper::shelve(const session_record& record) {
  if (log_.on_disk()) return;
  unshelve(record.uid);
  const std::uint64_t bytes = sizeof record + record.log_bytes + label_bytes(record);
  shelf_.push_back({record.uid, record.key, bytes});
  on_shelf_[record.uid] = std::prev(shelf_.end());
  shelf_bytes_ += shelf_.back().bytes;
}

void session_keeper::unshelve(session_uid uid) {
  const auto it = on_shelf_.find(uid);
  if (it == on_shelf_.end()) return;
  shelf_bytes_ -= it->second->bytes;
  shelf_.erase(it->second);
  on_shelf_.erase(it);
}

void session_keeper::trim_shelf() {
  removal r;
  r.answered = false;
  std::uint64_t bytes = shelf_bytes_;
  for (const auto& oldest : shelf_) {
    if (bytes <= options_.sessions.unsaved_bytes_max) break;
    const auto entry = entry_of(oldest.key);
    if (!entry || (*entry)->busy() || !(*entry)->waiting.empty()) continue;
    bytes -= oldest.bytes;
    r.gone.push_back(oldest.key);
  }
  if (!r.gone.empty()) begin_removal(std::move(r));
}

// ---------------------------------------------------------------- periodic work

void session_keeper::tick() {
  const steady_time now = ports_.time.now();
  for (const session_uid uid : log_.retry(now)) saved(uid);
  tiers_.move(disk_works(), false);
  if (now < next_check_) return;
  next_check_ = now + check_pause;
  for (const auto& late : book_.expire(now))
    refuse(late.reply, {error_kind::timeout, "timed out waiting for another turn of the session", "session_id"});
  for (open_entry* entry : book_.awaited()) advance(*entry);
  check_openings(now);
  write_notes(now);
  repeat_forget();
  book_.tidy();
  look_for_largest(now);
  if (now >= next_age_check_) {
    next_age_check_ = now + age_check_pause;
    forget_expected(now);
    give_back_space();
    if (options_.sessions.session_age_max_s > 0 && clock_is_sound(now)) aging_.emplace(session_key{tenant_id(), {}});
  }
  if (aging_) age_out();
}

/// The log has the whole session again, so its states may be written too.
void session_keeper::saved(session_uid uid) {
  open_entry* const entry = book_.find(uid);
  if (!entry) return;
  entry->unsaved = false;
  entry->in_log = true;
  if (!entry->tree) return;
  for (const auto& [id, v] : entry->tree->versions())
    if (const auto key = tiers_.cache().find(uid, id)) tiers_.cache().may_write(*key);
}

steady_time session_keeper::next_wake() const {
  const bool hurry = book_.waiters() + book_.leases() > 0 || !unforgotten_.empty() || aging_;
  const steady_time soon = hurry ? next_check_ : next_age_check_;
  const steady_time write =
      disk_works() ? tiers_.cache().next_write() : steady_time::max();  // on a failing disk it is always overdue
  return std::min({soon, log_.next_retry(), write});
}

bool session_keeper::flush() {
  for (const lease_id lease : book_.running())
    if (const auto [entry, w] = book_.find_lease(lease); w->note) write_note(*entry, *w);
  for (const session_uid uid : log_.retry(ports_.time.now())) saved(uid);
  if (!disk_works()) return tiers_.settled();
  tiers_.move(true, true);
  return tiers_.settled() && tiers_.cache().count().dirty == 0;
}

}  // namespace skein::persistence
