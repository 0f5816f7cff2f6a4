// The life of a turn: open_session, lease, commit to the log.
#include <algorithm>
#include <chrono>
#include <utility>

#include "actors/persistence/keeper/session_keeper.hpp"
#include "base/check.hpp"
#include "base/log/log.hpp"

namespace skein::persistence {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t id_bytes_max = 256;
// A running answer is noted in the log after this number of tokens or this time; longer answers are noted less often,
// so that the total size of an answer's notes is a small multiple of its length.
constexpr std::uint64_t note_tokens = 16;
constexpr std::uint64_t note_share = 32;
constexpr auto note_pause = 250ms;

std::uint64_t note_step(const version_record& so_far) {
  return std::max(note_tokens, static_cast<std::uint64_t>(so_far.tokens.size()) / note_share);
}

}  // namespace

// ---------------------------------------------------------------- loading sessions

result<open_entry*> session_keeper::entry_of(const session_key& key) {
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
    tiers_.cache().set_head(entry.uid, entry.tree->record().head);
  }
  return &entry;
}

/// Call after adding, changing or dropping the tree of an entry.
void session_keeper::recount(open_entry& entry) {
  book_.recount(entry);
  const stored_amount now = entry.tree ? storage::amount_of(entry.tree->record()) : stored_amount{};
  quota_.replace(entry.key.tenant, entry.stored, now);
  entry.stored = now;
}

result<void> session_keeper::restore(open_entry& entry) {
  auto record = log_.store().find(entry.key);
  if (!record) return record.error();
  if (!*record) return {};
  const session_uid uid = (*record)->uid;
  auto versions = log_.store().versions(uid);
  if (!versions) return versions.error();
  auto tree = session_tree::restore(std::move(**record), std::move(*versions));
  if (!tree) return tree.error();
  entry.uid = uid;
  entry.tree = std::move(*tree);
  entry.in_log = true;
  return {};
}

/// Turns the answers that a crash interrupted into unfinished versions; the head stays.
void session_keeper::recover_running(open_entry& entry) {
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
bool session_keeper::recover(open_entry& entry, version_record v) {
  const session_tree& tree = *entry.tree;
  if (v.tokens.empty() || v.id <= v.parent || tree.has(v.id) || !tree.has(v.parent)) return true;
  const history_hash history = v.history;
  const std::uint64_t segment_bytes = v.segment_bytes;
  v.unfinished = true;
  v.finish_reason = "length";
  v.stop_reason = "crash";
  tree.place(v, {});
  v.history = history;
  v.segment_bytes = segment_bytes;
  const std::int64_t now_ms = ports_.wall();
  const auto whole = std::make_shared<const version_record>(std::move(v));
  if (!log_.commit(tree.record_with(*whole, now_ms), {&whole, 1}, durability::process, ports_.time.now())) return false;
  entry.unsaved = log_.has_unsaved(entry.uid);
  entry.tree->add(whole, now_ms);
  recount(entry);
  return true;
}

/// The initial tree of a session named "a:1": that of "a" up to version 1.
std::optional<session_tree> session_keeper::fork_by_name(const session_key& key) {
  const auto name = branch_named(key);
  if (!name) return std::nullopt;
  auto origin = entry_of(name->first);
  if (!origin || !(*origin)->tree || (*origin)->removing || (*origin)->provisional) return std::nullopt;
  if (!(*origin)->tree->offers(name->second)) return std::nullopt;
  const session_record begun = begin_fork(**origin, name->second, key);
  return forked(*(*origin)->tree, name->second, {begun.uid, key}, begun.created_ms);
}

// ---------------------------------------------------------------- opening a turn

void session_keeper::handle(open_session&& q) {
  auto found = entry_of(q.session);
  if (!found) return refuse(q.reply, found.error());
  open_entry& entry = **found;
  if (replay(entry, q)) return;
  const return_address reply = q.reply;
  switch (book_.enter(entry, q)) {
    case session_book::place::free:
      if (auto ok = begin_turn(entry, q); !ok) refuse(reply, ok.error());
      break;
    case session_book::place::waits: break;
    case session_book::place::refused: refuse(reply, {error_kind::conflict, "session busy", "session_id"}); break;
    case session_book::place::full:
      refuse(reply, {error_kind::overloaded, "too many turns wait for this session", "session_id"});
      break;
  }
}

/// Starts the waiting turns that may run now.
void session_keeper::advance(open_entry& entry) {
  while (auto q = book_.next(entry)) {
    if (replay(entry, *q)) continue;
    if (auto ok = begin_turn(entry, *q); !ok) refuse(q->reply, ok.error());
  }
}

bool session_keeper::replay(const open_entry& entry, const open_session& q) {
  if (!entry.tree || entry.removing || q.request_key.empty()) return false;
  const auto done = entry.tree->with_request_key(q.request_key);
  if (!done || goes_on_with(*done, q)) return false;
  counters_.replays.fetch_add(1, std::memory_order_relaxed);
  const bool safe = log_.on_disk() && !log_.has_unsaved(entry.uid);
  deliver(session_replayed{q.reply, *done, safe ? durability::process : durability::memory});
  return true;
}

result<void> session_keeper::begin_turn(open_entry& entry, const open_session& q) {
  const bool made = !entry.tree;
  if (made) make_provisional(entry);
  // The session has no turn yet, and none is running.
  const bool first = entry.tree->versions().empty() && entry.writers.empty();
  if (first) entry.tree->begin_with(q.model, q.initial_state);
  const auto start = check_turn(entry, q, !first);
  const auto room = start ? room_for_turn(entry) : result<void>(start.error());
  if (!room) {
    if (made) forget_content(entry);
    return room.error();
  }
  if (made) recount(entry);
  running_writer& w = book_.begin(entry, q, start->base);
  counters_.turns_opened.fetch_add(1, std::memory_order_relaxed);
  session_opened answer;
  answer.reply = q.reply;
  answer.lease = w.lease;
  answer.state = start->state;
  answer.base = w.base;
  answer.number = w.number;
  answer.key = w.key;
  answer.history_from = start->history_from;
  answer.repeats_system = start->repeats_system;
  answer.unfinished = start->unfinished;
  w.opening = std::move(answer);
  resolve(entry, w);
  return {};
}

result<turn_start> session_keeper::check_turn(const open_entry& entry, const open_session& q, bool known) const {
  const session_record& record = entry.tree->record();
  if (record.model_identity != q.model)
    return error{error_kind::conflict,
                 "the session '" + entry.key.id + "' belongs to model " + record.model_identity + ", not to " + q.model,
                 "model"};
  return start_turn(known ? &*entry.tree : nullptr, q);
}

/// The size of a turn is known only at its end, so a turn may exceed the limit by its size.
result<void> session_keeper::room_for_turn(const open_entry& entry) const {
  const auto with_turn = storage::amount_of(entry.tree->record()) + stored_amount{0, 1, 1};
  return quota_.allows(entry.key.tenant, entry.stored, with_turn);
}

/// Makes the session that exists while its first turn runs.
void session_keeper::make_provisional(open_entry& entry) {
  if (auto forked = fork_by_name(entry.key)) {
    entry.tree = std::move(forked);
  } else {
    session_record record;
    record.uid = log_.new_uid();
    record.key = entry.key;
    record.created_ms = record.used_ms = ports_.wall();
    entry.tree.emplace(std::move(record));
  }
  entry.uid = entry.tree->record().uid;
  entry.provisional = true;
  book_.numbered(entry);
  book_.recount(entry);  // it counts as stored once its turn may run
}

// ---------------------------------------------------------------- notes of a running turn

void session_keeper::handle(note_running&& q) {
  const auto [entry, w] = book_.find_lease(q.lease);
  if (!entry || !log_.on_disk()) return;
  version_record v = std::move(q.so_far);
  v.id = w->number;
  v.parent = w->base;
  entry->tree->place(v, q.segment);
  w->note = std::move(v);
  const std::uint64_t more = w->note->tokens.size() - std::min<std::uint64_t>(w->note->tokens.size(), w->noted_tokens);
  if (more >= note_step(*w->note)) write_note(*entry, *w);
}

void session_keeper::write_note(open_entry& entry, running_writer& w) {
  if (log_.failing() || entry.unsaved) return;
  if (!entry.in_log || entry.tree->versions().empty()) {
    // After a crash the answer must be found in a session with its model. The session is removed if the turn fails.
    if (!log_.commit_to_disk(entry.tree->record(), entry.tree->all(), ports_.time.now())) return;
    entry.in_log = true;
  }
  log_.note_running(entry.uid, *w.note);
  w.noted_tokens = w.note->tokens.size();
  w.noted_at = ports_.time.now();
  w.note.reset();
}

void session_keeper::write_notes(steady_time now) {
  for (const lease_id lease : book_.running()) {
    const auto [entry, w] = book_.find_lease(lease);
    if (w->note && now >= w->noted_at + note_pause * (note_step(*w->note) / note_tokens)) write_note(*entry, *w);
  }
}

// ---------------------------------------------------------------- ending a turn

void session_keeper::handle(commit_turn&& q) {
  const auto [found, w] = book_.find_lease(q.lease);
  if (!found) return refuse(q.reply, {error_kind::conflict, "this turn has already ended", "session_id"});
  open_entry& entry = *found;
  const std::int64_t now_ms = ports_.wall();
  version_record v = std::move(q.version);
  v.id = w->number;
  v.parent = w->base;
  if (v.created_ms == 0) v.created_ms = now_ms;
  entry.tree->place(v, q.segment);
  // The first commit of a session to the log includes all its versions.
  std::vector<shared_version> news;
  if (!entry.in_log && !entry.unsaved) news = entry.tree->all();
  const auto number = v.id;
  const auto tokens = v.total_tokens;
  const auto& whole = news.emplace_back(std::make_shared<const version_record>(std::move(v)));
  const auto how = log_.commit(entry.tree->record_with(*whole, now_ms), news, q.wanted, ports_.time.now());
  if (!how) {
    distrust(entry, !entry.in_log, number);
    fail_turn(entry, *w);
    refuse(q.reply, how.error());
    return advance(entry);
  }
  entry.provisional = false;
  entry.unsaved = log_.has_unsaved(entry.uid);
  entry.in_log = entry.in_log || !entry.unsaved;
  entry.tree->add(whole, now_ms);
  running_writer writer = std::move(*w);
  book_.end(entry, writer.lease, true);
  recount(entry);
  committed(entry, std::move(writer), tokens);
  deliver(turn_committed{q.reply, number, *how});
  advance(entry);
  trim_shelf();
}

void session_keeper::committed(open_entry& entry, running_writer writer, std::uint64_t tokens) {
  counters_.turns_committed.fetch_add(1, std::memory_order_relaxed);
  if (!writer.state_answered)
    entry.expected[writer.key] = ports_.time.now();
  else if (writer.state)
    put_state(entry, writer.key, std::move(writer.state), tokens);
  tiers_.cache().set_head(entry.uid, entry.tree->record().head);
  shelve(entry.tree->record());
}

void session_keeper::handle(release&& q) {
  const auto [entry, w] = q.lease != 0 ? book_.find_lease(q.lease) : book_.withdraw(q.reply);
  if (!entry) return;
  if (w) fail_turn(*entry, *w);
  advance(*entry);
}

/// Discards a turn. A session without a committed turn is in the log only for its notes, so it is removed there too.
void session_keeper::fail_turn(open_entry& entry, const running_writer& w) {
  counters_.turns_failed.fetch_add(1, std::memory_order_relaxed);
  const version_id number = w.number;
  const bool noted = w.noted_tokens > 0;
  book_.end(entry, w.lease, false);
  const auto is_noted = [](const auto& one) { return one.second.noted_tokens > 0; };
  if (!entry.provisional || std::ranges::any_of(entry.writers, is_noted)) {
    if (noted) log_.forget_running(entry.uid, number);
  } else if (std::exchange(entry.in_log, false)) {
    if (!log_.remove(entry.tree->record(), ports_.time.now())) log_.remove_later(entry.tree->record());
  }
  if (entry.provisional && !entry.busy()) {
    log_.disown(entry.tree->record());
    forget_content(entry);
  }
}

/// After a failed write the log may have more or less of the session than it should; `refused`: a version that it
/// should not have.
void session_keeper::distrust(open_entry& entry, bool versions_too, version_id refused) {
  std::vector<shared_version> all;
  if (versions_too) all = entry.tree->all();
  log_.distrust(entry.tree->record(), all, refused);
  entry.unsaved = log_.has_unsaved(entry.uid);
}

void session_keeper::refuse(const return_address& to, error why) {
  counters_.refusals.fetch_add(1, std::memory_order_relaxed);
  deliver(refused{to, std::move(why)});
}

}  // namespace skein::persistence
