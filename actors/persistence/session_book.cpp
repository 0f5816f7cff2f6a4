#include "actors/persistence/session_book.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace skein::persistence {
namespace {

// Sessions whose last turn failed are remembered up to so many; see attempts_.
constexpr std::size_t attempts_max = 65536;
// What an entry takes beside its tree.
constexpr std::size_t entry_overhead = 512;

bool same(const return_address& a, const return_address& b) {
  return a.io_thread == b.io_thread && a.number == b.number;
}

}  // namespace

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

open_entry* session_book::find_lease(lease_id lease) {
  const auto it = by_lease_.find(lease);
  return it == by_lease_.end() ? nullptr : &*it->second;
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
  entry.counted_bytes = entry_overhead + (entry.tree ? entry.tree->bytes() : 0);
  tree_bytes_ += entry.counted_bytes;
}

void session_book::forget_content(open_entry& entry) {
  check(!entry.writer, "a session goes when no turn runs");
  if (entry.uid != 0) {
    by_uid_.erase(entry.uid);
    attempts_.erase(entry.uid);
  }
  entry.uid = 0;
  entry.tree.reset();
  entry.in_log = entry.unsaved = entry.provisional = false;
  entry.expected.clear();
  recount(entry);
}

session_book::place session_book::enter(open_entry& entry, open_session& question) {
  if (!entry.busy() && entry.waiting.empty()) return place::free;
  if (!options_.wait_when_busy) return place::refused;
  if (entry.waiting.size() >= options_.waiters_max) return place::full;
  entry.waiting.push_back(std::move(question));
  crowded_[entry.key] = by_key_.at(entry.key);
  ++waiters_;
  return place::waits;
}

state_key session_book::key_for(session_uid uid, version_id number) const {
  const auto it = attempts_.find(uid);
  const std::uint64_t attempt = it == attempts_.end() ? first_attempt_ : it->second;
  return {uid, attempt << 32 | number};
}

running_writer& session_book::begin(open_entry& entry, const open_session& question, version_id base) {
  check(!entry.busy(), "a session has one writer");
  check(entry.uid != 0, "a session has its number before its first turn");
  running_writer w;
  w.lease = ++last_lease_;
  w.owner = question.reply;
  w.base = base;
  w.number = (entry.tree ? entry.tree->record().last_version : 0) + 1;
  w.key = key_for(entry.uid, w.number);
  w.deadline = question.deadline;
  by_lease_[w.lease] = by_key_.at(entry.key);
  return entry.writer.emplace(std::move(w));
}

void session_book::end(open_entry& entry, bool committed) {
  check(entry.writer.has_value(), "a lease ends once");
  if (committed) {
    attempts_.erase(entry.uid);
  } else {
    const auto failed = static_cast<std::uint32_t>(entry.writer->key.number >> 32);
    attempts_[entry.uid] = failed + 1;
    if (attempts_.size() > attempts_max) {
      for (const auto& [uid, attempt] : attempts_) first_attempt_ = std::max(first_attempt_, attempt + 1);
      attempts_.clear();
    }
  }
  by_lease_.erase(entry.writer->lease);
  entry.writer.reset();
}

std::optional<open_session> session_book::next(open_entry& entry) {
  if (entry.busy() || entry.waiting.empty()) return std::nullopt;
  open_session question = std::move(entry.waiting.front());
  entry.waiting.pop_front();
  --waiters_;
  if (entry.waiting.empty()) crowded_.erase(entry.key);
  return question;
}

open_entry* session_book::withdraw(const return_address& owner) {
  for (auto& [lease, at] : by_lease_)
    if (same(at->writer->owner, owner)) return &*at;
  for (auto& [key, at] : crowded_) {
    const auto gone = std::ranges::find_if(at->waiting, [&](const auto& q) { return same(q.reply, owner); });
    if (gone == at->waiting.end()) continue;
    at->waiting.erase(gone);
    --waiters_;
    if (at->waiting.empty()) crowded_.erase(key);
    return nullptr;
  }
  return nullptr;
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

std::vector<open_entry*> session_book::leased() {
  std::vector<open_entry*> all;
  for (auto& [lease, at] : by_lease_) all.push_back(&*at);
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
    leases += e.writer ? 1 : 0;
    if (e.waiting.empty() == crowded_.contains(e.key)) return "who waits for '" + e.key.id + "' is not known";
    if (!e.waiting.empty() && !e.busy()) return "turns wait for '" + e.key.id + "', which is free";
    if (e.writer && e.tree && e.writer->number != e.tree->record().last_version + 1)
      return "a turn of '" + e.key.id + "' has a number that is taken";
  }
  if (bytes != tree_bytes_) return "bytes of trees do not add up";
  if (waiters != waiters_) return "waiting turns do not add up";
  if (leases != by_lease_.size()) return "leases do not add up";
  if (by_key_.size() != recent_.size()) return "entries do not add up";
  return std::nullopt;
}

}  // namespace skein::persistence
