#include "actors/persistence/turns/turn_keeper.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace skein::persistence {

// ---------------------------------------------------------------- opening a turn

void turn_keeper::handle(open_session&& q) {
  auto found = sessions_.entry_of(q.session);
  if (!found) return replies_.refuse(q.reply, found.error());
  open_entry& entry = **found;
  if (replay(entry, q)) return;
  const return_address reply = q.reply;
  switch (book_.enter(entry, q)) {
    case session_book::place::free:
      if (auto ok = begin_turn(entry, q); !ok) replies_.refuse(reply, ok.error());
      break;
    case session_book::place::waits: break;
    case session_book::place::refused:
      replies_.refuse(reply, {error_kind::conflict, "session busy", "session_id"});
      break;
    case session_book::place::full:
      replies_.refuse(reply, {error_kind::overloaded, "too many turns wait for this session", "session_id"});
      break;
  }
}

void turn_keeper::advance(open_entry& entry) {
  while (auto q = book_.next(entry)) {
    if (replay(entry, *q)) continue;
    if (auto ok = begin_turn(entry, *q); !ok) replies_.refuse(q->reply, ok.error());
  }
}

bool turn_keeper::replay(const open_entry& entry, const open_session& q) {
  if (!entry.tree || entry.removing() || q.request_key.empty()) return false;
  const auto done = entry.tree->with_request_key(q.request_key);
  if (!done || goes_on_with(*done, q)) return false;
  counters_.replays.fetch_add(1, std::memory_order_relaxed);
  const bool safe = log_.on_disk() && !log_.has_unsaved(entry.uid);
  replies_.deliver(session_replayed{q.reply, *done, safe ? durability::process : durability::memory});
  return true;
}

result<void> turn_keeper::begin_turn(open_entry& entry, const open_session& q) {
  const bool made = entry.phase() == session_phase::absent;
  if (made) make_provisional(entry);
  // The session has no turn yet, and none is running.
  const bool first = entry.tree->versions().empty() && entry.writers.empty();
  if (first) entry.tree->begin_with(q.model, q.initial_state);
  const auto start = check_turn(entry, q, !first);
  const auto room = start ? room_for_turn(entry) : result<void>(start.error());
  if (!room) {
    if (made) states_.forget_content(entry);
    return room.error();
  }
  if (made) sessions_.recount(entry);
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
  answer.repeats_answer = start->repeats_answer;
  answer.unfinished = start->unfinished;
  w.opening = std::move(answer);
  opening_.resolve(entry, w);
  return {};
}

result<turn_start> turn_keeper::check_turn(const open_entry& entry, const open_session& q, bool known) const {
  const session_record& record = entry.tree->record();
  if (!ports_.states->models().same(record.model_identity, q.model))
    return error{error_kind::conflict,
                 "the session '" + entry.key.id + "' belongs to model " + record.model_identity + ", not to " + q.model,
                 "model"};
  return start_turn(known ? &*entry.tree : nullptr, q);
}

/// The size of a turn is known only at its end, so a turn may exceed the limit by its size.
result<void> turn_keeper::room_for_turn(const open_entry& entry) const {
  const auto with_turn = storage::amount_of(entry.tree->record()) + stored_amount{0, 1, 1};
  return quota_.allows(entry.key.tenant, entry.stored, with_turn);
}

/// Makes the session that exists while its first turn runs.
void turn_keeper::make_provisional(open_entry& entry) {
  if (auto forked = fork_by_name(entry.key)) {
    entry.begin(std::move(*forked));
  } else {
    session_record record;
    record.uid = log_.new_uid();
    record.key = entry.key;
    record.created_ms = record.used_ms = ports_.wall();
    entry.begin(session_tree(std::move(record)));
  }
  book_.numbered(entry);
  book_.recount(entry);  // it counts as stored once its turn may run
}

/// The initial tree of a session named "a:1": that of "a" up to version 1.
std::optional<session_tree> turn_keeper::fork_by_name(const session_key& key) {
  const auto name = branch_named(key);
  if (!name) return std::nullopt;
  auto origin = sessions_.entry_of(name->first);
  if (!origin || !(*origin)->exists() || (*origin)->removing()) return std::nullopt;
  if (!(*origin)->tree->offers(name->second)) return std::nullopt;
  const session_record begun = states_.begin_fork(**origin, name->second, key);
  return forked(*(*origin)->tree, name->second, {begun.uid, key}, begun.created_ms);
}

// ---------------------------------------------------------------- while a turn runs

void turn_keeper::handle(note_running&& q) {
  if (const auto [entry, w] = book_.find_lease(q.lease); entry) notes_.take(*entry, *w, std::move(q));
}

void turn_keeper::handle(state_kept&& q) {
  open_entry* const entry = book_.find(q.key.owner);
  if (!entry) return opening_.resolve_waiting(q.key);  // the session is gone, but a fork of it may wait for this state
  for (auto& [lease, w] : entry->writers) {
    if (w.key != q.key) continue;
    w.state = std::move(q.state);
    return;
  }
  const auto expected = entry->expected.find(q.key);
  if (expected == entry->expected.end()) return;  // the turn failed
  const std::uint64_t tokens = expected->second.tokens;
  entry->expected.erase(expected);
  if (q.state) states_.put(*entry, q.key, std::move(q.state), tokens);
  opening_.resolve_waiting(q.key);
}

void turn_keeper::check_deadlines(steady_time now) {
  for (const auto& late : book_.expire(now))
    replies_.refuse(late.reply,
                    {error_kind::timeout, "timed out waiting for another turn of the session", "session_id"});
  for (open_entry* entry : book_.awaited()) advance(*entry);
  check_openings(now);
  notes_.write_due(now);
}

/// Checks the deadlines of turns that wait for a state.
void turn_keeper::check_openings(steady_time now) {
  for (const lease_id lease : book_.running()) {
    const auto [entry, w] = book_.find_lease(lease);
    if (!w->opening) continue;
    if (w->deadline <= now) {
      replies_.refuse(w->owner, {error_kind::timeout, "timed out waiting for the session's state", "session_id"});
      fail_turn(*entry, *w);
      advance(*entry);
    } else if (w->patience <= now) {
      opening_.stop_waiting(*entry, *w);
    }
  }
}

// ---------------------------------------------------------------- ending a turn

bool turn_keeper::commit(commit_turn&& q) {
  const auto [found, w] = book_.find_lease(q.lease);
  if (!found) {
    replies_.refuse(q.reply, {error_kind::conflict, "this turn has already ended", "session_id"});
    return false;
  }
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
  const auto state_tokens = v.total_tokens - q.state_lacks;
  const auto& whole = news.emplace_back(std::make_shared<const version_record>(std::move(v)));
  const auto how = log_.commit(entry.tree->record_with(*whole, now_ms), news, q.wanted, ports_.time.now());
  if (!how) {
    sessions_.distrust(entry, !entry.in_log, number);
    fail_turn(entry, *w);
    replies_.refuse(q.reply, how.error());
    advance(entry);
    return false;
  }
  entry.confirm();
  entry.unsaved = log_.has_unsaved(entry.uid);
  entry.in_log = entry.in_log || !entry.unsaved;
  entry.tree->add(whole, now_ms);
  running_writer writer = std::move(*w);
  book_.end(entry, writer.lease, true);
  sessions_.recount(entry);
  committed(entry, std::move(writer), state_tokens);
  replies_.deliver(turn_committed{q.reply, number, *how});
  advance(entry);
  return true;
}

/// `state_tokens`: that the state of the new version has processed, or will have.
void turn_keeper::committed(open_entry& entry, running_writer writer, std::uint64_t state_tokens) {
  counters_.turns_committed.fetch_add(1, std::memory_order_relaxed);
  if (!writer.state)
    entry.expected[writer.key] = {ports_.time.now(), state_tokens};
  else if (*writer.state)
    states_.put(entry, writer.key, std::move(*writer.state), state_tokens);
  states_.note_head(entry);
  shelf_.put(entry.tree->record());
}

void turn_keeper::handle(release&& q) {
  const auto [entry, w] = q.lease != 0 ? book_.find_lease(q.lease) : book_.withdraw(q.reply);
  if (!entry) return;
  if (w) fail_turn(*entry, *w);
  advance(*entry);
}

/// Discards a turn. A session without a committed turn is in the log only for its notes, so it is removed there too.
void turn_keeper::fail_turn(open_entry& entry, const running_writer& w) {
  counters_.turns_failed.fetch_add(1, std::memory_order_relaxed);
  const version_id number = w.number;
  const bool noted = w.noted_tokens > 0;
  book_.end(entry, w.lease, false);
  const auto is_noted = [](const auto& one) { return one.second.noted_tokens > 0; };
  if (!entry.provisional() || std::ranges::any_of(entry.writers, is_noted)) {
    if (noted) log_.forget_running(entry.uid, number);
  } else if (std::exchange(entry.in_log, false)) {
    if (!log_.remove(entry.tree->record(), ports_.time.now())) log_.remove_later(entry.tree->record());
  }
  if (entry.provisional() && !entry.busy()) {
    log_.disown(entry.tree->record());
    states_.forget_content(entry);
  }
}

}  // namespace skein::persistence
