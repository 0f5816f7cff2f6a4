#include "actors/persistence/sessions/session_book.hpp"

#include <algorithm>
#include <utility>

#include "actors/persistence/sessions/turn_start.hpp"
#include "base/check.hpp"

namespace skein::persistence {
namespace {

// Memory of an entry without its tree.
constexpr std::size_t entry_overhead = 512;

bool same(const return_address& a, const return_address& b) {
  return a.io_thread == b.io_thread && a.number == b.number;
}

}  // namespace

bool open_entry::answers(std::string_view request_key) const {
  return std::ranges::any_of(writers, [&](const auto& one) { return one.second.request_key == request_key; });
}

void open_entry::begin(session_tree first) {
  check(phase_ == session_phase::absent, "only a session that does not exist is made by a turn");
  uid = first.record().uid;
  tree = std::move(first);
  phase_ = session_phase::provisional;
}

void open_entry::hold(session_tree whole) {
  // A turn that failed for lack of memory may have left a provisional session.
  check(phase_ == session_phase::absent || (provisional() && writers.empty()), "a session is made once");
  uid = whole.record().uid;
  tree = std::move(whole);
  phase_ = session_phase::stored;
}

void open_entry::confirm() {
  check(phase_ == session_phase::provisional || phase_ == session_phase::stored, "a turn of an open session commits");
  phase_ = session_phase::stored;
}

void open_entry::begin_removal() {
  check(phase_ == session_phase::provisional || phase_ == session_phase::stored, "a session is removed once");
  before_removal_ = std::exchange(phase_, session_phase::removing);
}

void open_entry::end_removal() {
  check(phase_ == session_phase::removing, "a removal ends once");
  phase_ = before_removal_;
}

void open_entry::drop() {
  check(phase_ == session_phase::provisional || phase_ == session_phase::stored, "content goes once, after a removal");
  check(writers.empty(), "a session goes when no turn runs");
  uid = 0;
  tree.reset();
  in_log = unsaved = false;
  expected.clear();
  phase_ = session_phase::absent;
}

open_entry* session_book::find(const session_key& key) {
  const auto it = by_key_.find(key);
  if (it == by_key_.end()) return nullptr;
  touch(it->second);
  return &*it->second;
}

open_entry* session_book::find(session_uid uid) {
  const auto it = by_uid_.find(uid);
  return it == by_uid_.end() ? nullptr : &*it->second;
}

session_book::place_of_turn session_book::find_lease(lease_id lease) {
  const auto it = by_lease_.find(lease);
  if (it == by_lease_.end()) return {};
  return {&*it->second, &it->second->writers.at(lease)};
}

void session_book::touch(place_in_list at) { recent_.splice(recent_.begin(), recent_, at); }

open_entry& session_book::add(open_entry entry) {
  check(!by_key_.contains(entry.key), "a session is in memory once");
  recent_.push_front(std::move(entry));
  by_key_[recent_.front().key] = recent_.begin();
  numbered(recent_.front());
  recount(recent_.front());
  return recent_.front();
}

void session_book::numbered(open_entry& entry) {
  if (entry.uid != 0) by_uid_[entry.uid] = by_key_.at(entry.key);
}

void session_book::recount(open_entry& entry) {
  tree_bytes_ -= entry.counted_bytes;
  const std::size_t names = 2 * (entry.key.tenant.size() + entry.key.id.size());  // here and in by_key_
  entry.counted_bytes = entry_overhead + names + (entry.tree ? entry.tree->bytes() : 0);
  tree_bytes_ += entry.counted_bytes;
}

void session_book::forget_content(open_entry& entry) {
  const session_uid gone = entry.uid;
  entry.drop();
  if (gone != 0) by_uid_.erase(gone);
  recount(entry);
}

bool session_book::may_begin(const open_entry& entry, const open_session& question) const {
  if (entry.removing()) return false;
  if (entry.writers.empty()) return true;
  if (entry.writers.size() >= options_.writers_max || !names_its_place(*entry.tree, question)) return false;
  return question.request_key.empty() || std::ranges::none_of(entry.writers, [&](const auto& one) {
           return one.second.request_key == question.request_key;
         });
}

session_book::place session_book::enter(open_entry& entry, open_session& question) {
  if (entry.waiting.empty() && may_begin(entry, question)) return place::free;
  if (options_.busy == "refuse") return place::refused;
  if (entry.waiting.size() >= options_.waiters_max) return place::full;
  entry.waiting.push_back(std::move(question));
  crowded_[entry.key] = by_key_.at(entry.key);
  ++waiters_;
  return place::waits;
}

running_writer& session_book::begin(open_entry& entry, const open_session& question, version_id base) {
  check(may_begin(entry, question), "a turn begins when it may");
  check(entry.uid != 0, "a session has its number before its first turn");
  running_writer w;
  w.lease = ++last_lease_;
  w.owner = question.reply;
  w.request_key = question.request_key;
  w.base = base;
  w.number = entry.tree ? entry.tree->record().last_version : 0;
  if (!entry.writers.empty()) w.number = std::max(w.number, entry.writers.rbegin()->second.number);
  ++w.number;
  w.key = {entry.uid, std::uint64_t{failures_} << 32 | w.number};
  w.deadline = question.deadline;
  by_lease_[w.lease] = by_key_.at(entry.key);
  return entry.writers.emplace(w.lease, std::move(w)).first->second;
}

void session_book::end(open_entry& entry, lease_id lease, bool committed) {
  check(entry.writers.erase(lease) == 1, "a lease ends once");
  if (!committed) ++failures_;
  by_lease_.erase(lease);
}

std::optional<open_session> session_book::next(open_entry& entry) {
  if (entry.waiting.empty() || !may_begin(entry, entry.waiting.front())) return std::nullopt;
  open_session question = std::move(entry.waiting.front());
  entry.waiting.pop_front();
  --waiters_;
  if (entry.waiting.empty()) crowded_.erase(entry.key);
  return question;
}

session_book::place_of_turn session_book::withdraw(const return_address& owner) {
  for (auto& [lease, at] : by_lease_)
    if (running_writer& w = at->writers.at(lease); same(w.owner, owner)) return {&*at, &w};
  for (auto& [key, at] : crowded_) {
    const auto gone = std::ranges::find_if(at->waiting, [&](const auto& q) { return same(q.reply, owner); });
    if (gone == at->waiting.end()) continue;
    open_entry& entry = *at;
    entry.waiting.erase(gone);
    --waiters_;
    if (entry.waiting.empty()) crowded_.erase(key);
    return {&entry, nullptr};
  }
  return {};
}

std::vector<open_session> session_book::expire(steady_time now) {
  std::vector<open_session> late;
  for (auto it = crowded_.begin(); it != crowded_.end();) {
    auto& waiting = it->second->waiting;
    for (auto q = waiting.begin(); q != waiting.end();) {
      if (q->deadline > now) {
        ++q;
        continue;
      }
      late.push_back(std::move(*q));
      q = waiting.erase(q);
      --waiters_;
    }
    it = waiting.empty() ? crowded_.erase(it) : std::next(it);
  }
  return late;
}

std::vector<lease_id> session_book::running() const {
  std::vector<lease_id> all;
  all.reserve(by_lease_.size());
  for (const auto& [lease, at] : by_lease_) all.push_back(lease);
  return all;
}

std::vector<open_entry*> session_book::awaited() {
  std::vector<open_entry*> all;
  all.reserve(crowded_.size());
  for (const auto& [key, at] : crowded_) all.push_back(&*at);
  return all;
}

void session_book::drop(place_in_list at) {
  tree_bytes_ -= at->counted_bytes;
  by_uid_.erase(at->uid);
  by_key_.erase(at->key);
  recent_.erase(at);
}

void session_book::tidy() {
  for (auto at = recent_.end(); at != recent_.begin() && tree_bytes_ > options_.tree_bytes_max;) {
    const auto candidate = std::prev(at);
    if (candidate->needed())
      at = candidate;
    else
      drop(candidate);
  }
}

std::optional<std::string> session_book::self_check() const {
  std::size_t bytes = 0, waiters = 0, leases = 0;
  for (const auto& e : recent_) {
    bytes += e.counted_bytes;
    waiters += e.waiting.size();
    leases += e.writers.size();
    if (e.tree.has_value() != (e.phase() != session_phase::absent)) return "the phase of '" + e.key.id + "' is wrong";
    if (e.waiting.empty() == crowded_.contains(e.key)) return "the waiting turns of '" + e.key.id + "' are not indexed";
    if (!e.waiting.empty() && may_begin(e, e.waiting.front()))
      return "a turn waits for '" + e.key.id + "' although it may start";
    if (e.writers.size() > options_.writers_max) return "too many turns of '" + e.key.id + "' are running";
    version_id before = 0;
    for (const auto& [lease, w] : e.writers) {
      if (w.number <= before || w.number <= w.base) return "turns of '" + e.key.id + "' are not in order";
      if (e.tree && e.tree->has(w.number)) return "a turn of '" + e.key.id + "' has a number that is taken";
      if (e.tree && !e.tree->has(w.base)) return "a turn of '" + e.key.id + "' continues a missing version";
      before = w.number;
    }
  }
  if (bytes != tree_bytes_) return "the byte count of trees is wrong";
  if (waiters != waiters_) return "the count of waiting turns is wrong";
  if (leases != by_lease_.size()) return "the count of leases is wrong";
  if (by_key_.size() != recent_.size()) return "the count of sessions in memory is wrong";
  return std::nullopt;
}

}  // namespace skein::persistence
