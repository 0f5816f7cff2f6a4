#include "actors/persistence/states/tiered_cache.hpp"

#include <algorithm>
#include <array>

#include "actors/persistence/sessions/session_book.hpp"
#include "actors/persistence/states/thinning.hpp"
#include "base/check.hpp"

namespace skein::persistence {

// ---------------------------------------------------------------- indexes

void tiered_cache::set_ram(const state_key& key, entry& e, state_buffer state) {
  if (e.ram) {
    ram_bytes_ -= bytes(e.ram);
    ram_by_use_.erase({e.used, key});
  }
  e.ram = std::move(state);
  if (e.ram) {
    ram_bytes_ += bytes(e.ram);
    ram_by_use_.insert({e.used, key});
  }
  index(key, e);
}

void tiered_cache::set_disk(const state_key& key, entry& e, bool there, std::uint64_t disk_bytes) {
  if (e.disk) {
    disk_bytes_ -= e.disk_bytes;
    disk_by_use_.erase({e.used, key});
    disk_by_worth_.erase({e.on_disk, e.used, key});
  }
  e.disk = there;
  e.disk_bytes = there ? disk_bytes : 0;
  if (there) {
    disk_bytes_ += disk_bytes;
    e.on_disk = worth::newest;
    disk_by_use_.insert({e.used, key});
    disk_by_worth_.insert({e.on_disk, e.used, key});
  }
  index(key, e);
  rethin(key.owner);
}

void tiered_cache::set_dirty(const state_key& key, entry& e, bool dirty) {
  if (e.dirty) {
    dirty_bytes_ -= bytes(e.ram);
    dirty_by_age_.erase({e.dirty_since, key});
  }
  e.dirty = dirty;
  if (dirty) {
    dirty_bytes_ += bytes(e.ram);
    if (!e.held && !e.writing) dirty_by_age_.insert({e.dirty_since, key});
  }
}

void tiered_cache::set_worth(const state_key& key, entry& e, worth w) {
  if (e.on_disk == w) return;
  disk_by_worth_.erase({e.on_disk, e.used, key});
  e.on_disk = w;
  disk_by_worth_.insert({e.on_disk, e.used, key});
}

void tiered_cache::set_used(const state_key& key, entry& e, std::int64_t now_ms) {
  const std::uint64_t before = std::exchange(e.used, ++uses_);
  if (ram_by_use_.erase({before, key}) > 0) ram_by_use_.insert({e.used, key});
  if (disk_by_use_.erase({before, key}) > 0) disk_by_use_.insert({e.used, key});
  if (disk_by_worth_.erase({e.on_disk, before, key}) > 0) disk_by_worth_.insert({e.on_disk, e.used, key});
  e.used_ms = now_ms;
}

/// Keeps sessions_ in step with an entry.
void tiered_cache::index(const state_key& key, const entry& e) {
  if (!limits_.thin) return;
  const version_id version = version_of(key);
  if (e.ram || e.disk) {
    sessions_[key.owner].versions[version] = key;
    return;
  }
  const auto owner = sessions_.find(key.owner);
  if (owner == sessions_.end()) return;
  const auto listed = owner->second.versions.find(version);
  if (listed != owner->second.versions.end() && listed->second == key) owner->second.versions.erase(listed);
  if (owner->second.versions.empty()) sessions_.erase(owner);
}

void tiered_cache::rethin(session_uid owner) {
  const auto found = sessions_.find(owner);
  if (!limits_.thin || found == sessions_.end()) return;
  std::vector<version_id> present;
  for (const auto& [version, key] : found->second.versions)
    if (entries_.at(key).disk) present.push_back(version);
  const version_id head = found->second.head ? found->second.head : (present.empty() ? 0 : present.back());
  const auto may_go = thinnable(present, head);
  const auto beyond = std::ranges::upper_bound(present, head);
  const version_id newest = beyond == present.begin() ? 0 : *std::prev(beyond);
  for (const version_id version : present) {
    const state_key& key = found->second.versions.at(version);
    const bool thin = std::ranges::binary_search(may_go, version);
    set_worth(key, entries_.at(key), thin ? worth::thinnable : version == newest ? worth::newest : worth::old);
  }
}

void tiered_cache::erase_if_gone(const state_key& key, decisions* told) {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return;
  const entry& e = it->second;
  if (e.ram || e.disk) return;
  if (told) told->lost.push_back(key);
  entries_.erase(it);
}

// ---------------------------------------------------------------- events

void tiered_cache::put(const state_key& key, state_buffer state, label what, bool writable, steady_time now,
                       std::int64_t now_ms) {
  entry& e = entries_[key];
  check(!e.ram && !e.disk, "a state is put once");
  e.what = std::move(what);
  set_used(key, e, now_ms);
  set_ram(key, e, std::move(state));
  e.held = !writable;
  e.dirty_since = now;
  if (has_disk()) set_dirty(key, e, true);
}

void tiered_cache::may_write(const state_key& key) {
  const auto it = entries_.find(key);
  if (it == entries_.end() || !it->second.held) return;
  entry& e = it->second;
  e.held = false;
  if (e.dirty && !e.writing) dirty_by_age_.insert({e.dirty_since, key});
}

void tiered_cache::found(const state_key& key, std::uint64_t bytes, std::int64_t used_ms) {
  entry& e = entries_[key];
  check(!e.ram && !e.disk, "a state is found once");
  set_used(key, e, used_ms);
  set_disk(key, e, true, bytes);
}

void tiered_cache::loaded(const state_key& key, state_buffer state, label what) {
  const auto it = entries_.find(key);
  if (it == entries_.end() || !it->second.disk || it->second.ram) return;
  it->second.what = std::move(what);
  set_ram(key, it->second, std::move(state));
}

void tiered_cache::unreadable(const state_key& key) {
  const auto it = entries_.find(key);
  if (it == entries_.end() || !it->second.disk) return;
  set_disk(key, it->second, false, 0);
  erase_if_gone(key);
}

bool tiered_cache::written(const state_key& key, bool well, std::uint64_t bytes, steady_time now) {
  check(writing_ > 0, "a write ends once");
  --writing_;
  const auto it = entries_.find(key);
  if (it == entries_.end() || !it->second.writing) return !well;
  entry& e = it->second;
  e.writing = false;
  writing_bytes_ -= this->bytes(e.ram);
  set_dirty(key, e, false);
  if (well) {
    set_disk(key, e, true, bytes);
  } else {
    e.dirty_since = now;
    set_dirty(key, e, true);
  }
  return true;
}

void tiered_cache::slot_kept(const state_key& key, device_id device) { vram_[key] = device; }

void tiered_cache::slot_dropped(const state_key& key, device_id device) {
  if (device_of(key) == device) vram_.erase(key);
}

void tiered_cache::set_head(session_uid owner, version_id head) {
  const auto found = sessions_.find(owner);
  if (found == sessions_.end() || found->second.head == head) return;
  found->second.head = head;
  rethin(owner);
}

void tiered_cache::forget(const state_key& key) {
  vram_.erase(key);
  const auto it = entries_.find(key);
  if (it == entries_.end()) return;
  entry& e = it->second;
  set_dirty(key, e, false);
  if (e.writing) writing_bytes_ -= bytes(e.ram);
  e.writing = false;  // written() then returns false
  set_ram(key, e, nullptr);
  set_disk(key, e, false, 0);
  entries_.erase(it);
}

void tiered_cache::forget_owner(session_uid owner, const std::function<bool(const state_key&)>& goes) {
  for (const auto& key : states_of(owner))
    if (goes(key)) forget(key);
}

// ---------------------------------------------------------------- queries

tier tiered_cache::fastest(const state_key& key) const {
  if (vram_.contains(key)) return tier::vram;
  const auto it = entries_.find(key);
  return it == entries_.end() ? tier::none : it->second.ram ? tier::ram : tier::disk;
}

std::optional<device_id> tiered_cache::device_of(const state_key& key) const {
  const auto it = vram_.find(key);
  return it == vram_.end() ? std::nullopt : std::optional(it->second);
}

bool tiered_cache::readable(const state_key& key) const {
  const auto it = entries_.find(key);
  return it != entries_.end() && (it->second.ram || it->second.disk);
}

std::optional<state_key> tiered_cache::find(session_uid owner, version_id version) const {
  const auto found = sessions_.find(owner);
  if (found == sessions_.end()) return std::nullopt;
  const auto listed = found->second.versions.find(version);
  if (listed == found->second.versions.end()) return std::nullopt;
  return listed->second;
}

std::vector<state_key> tiered_cache::states_of(session_uid owner) const {
  std::vector<state_key> all;
  if (const auto found = sessions_.find(owner); found != sessions_.end())
    for (const auto& [version, key] : found->second.versions) all.push_back(key);
  return all;
}

state_buffer tiered_cache::lend(const state_key& key, std::int64_t now_ms) {
  const auto it = entries_.find(key);
  if (it == entries_.end() || !it->second.ram) return nullptr;
  entry& e = it->second;
  set_used(key, e, now_ms);
  if (state_buffer lent = e.loan.lock()) return lent;
  const state_buffer loan(e.ram.get(), [whole = e.ram](const model::state_value*) {});
  e.loan = loan;
  return loan;
}

void tiered_cache::touch(const state_key& key, std::int64_t now_ms) {
  if (const auto it = entries_.find(key); it != entries_.end()) set_used(key, it->second, now_ms);
}

state_buffer tiered_cache::buffer(const state_key& key) const {
  const auto it = entries_.find(key);
  return it == entries_.end() ? nullptr : it->second.ram;
}

std::optional<state_key> tiered_cache::least_used() const {
  std::optional<std::pair<std::uint64_t, state_key>> least;
  for (const by_use* set : {&ram_by_use_, &disk_by_use_})
    if (!set->empty() && (!least || *set->begin() < *least)) least = *set->begin();
  if (!least) return std::nullopt;
  return least->second;
}

tiered_cache::label tiered_cache::label_of(const state_key& key) const {
  const auto it = entries_.find(key);
  return it == entries_.end() ? label{} : it->second.what;
}

// ---------------------------------------------------------------- decisions

tiered_cache::decisions tiered_cache::plan(steady_time now, std::int64_t now_ms, bool disk_works, bool flush) {
  decisions out;
  if (disk_works && has_disk()) write_behind(now, flush, out);
  shrink_ram(disk_works && has_disk(), out);
  shrink_disk(now_ms, out);
  return out;
}

steady_time tiered_cache::next_write() const {
  if (!limits_.write_behind || dirty_by_age_.empty() || writing_ >= limits_.writes_max) return steady_time::max();
  return dirty_by_age_.begin()->first + limits_.write_delay;
}

/// Whether a state that is not on disk yet would survive thinning there, next to its neighbours that are on disk or
/// will be written.
bool tiered_cache::worth_writing(const state_key& key) const {
  if (!limits_.thin) return true;
  const session& s = sessions_.at(key.owner);
  const auto will_be_there = [&](const state_key& other) {
    const entry& e = entries_.at(other);
    return e.disk || e.dirty;
  };
  const auto self = s.versions.find(version_of(key));
  std::vector<version_id> around{self->first};
  for (auto it = self; it != s.versions.begin();)
    if (will_be_there((--it)->second)) {
      around.insert(around.begin(), it->first);
      break;
    }
  for (auto it = std::next(self); it != s.versions.end(); ++it)
    if (will_be_there(it->second)) {
      around.push_back(it->first);
      break;
    }
  const auto may_go = thinnable(around, s.head ? s.head : s.versions.rbegin()->first);
  return !std::ranges::binary_search(may_go, version_of(key));
}

void tiered_cache::want_write(const state_key& key, entry& e, decisions& out) {
  dirty_by_age_.erase({e.dirty_since, key});
  e.writing = true;
  ++writing_;
  writing_bytes_ += bytes(e.ram);
  out.write.push_back(key);
}

/// Heads are written first; states that would be thinned at once are not written at all.
void tiered_cache::write_behind(steady_time now, bool flush, decisions& out) {
  const auto due = [&] {
    return !dirty_by_age_.empty() && writing_ < limits_.writes_max &&
           (flush || (limits_.write_behind && (dirty_bytes_ - writing_bytes_ > limits_.dirty_bytes_max ||
                                               dirty_by_age_.begin()->first + limits_.write_delay <= now)));
  };
  for (const bool heads : {true, false}) {
    if (!due()) return;
    const auto candidates = dirty_by_age_;
    for (const auto& [since, key] : candidates) {
      if (!due()) return;
      entry& e = entries_.at(key);
      const auto owner = sessions_.find(key.owner);
      const bool is_head = owner == sessions_.end() || version_of(key) == owner->second.head ||
                           key == owner->second.versions.rbegin()->second;
      if (is_head != heads) continue;
      if (worth_writing(key))
        want_write(key, e, out);
      else
        set_dirty(key, e, false);
    }
  }
}

void tiered_cache::shrink_ram(bool disk_works, decisions& out) {
  const std::size_t budget = limits_.ram_bytes_max - std::min(limits_.ram_bytes_max, reserved_);
  const auto over = [&](std::size_t slack) {
    return ram_bytes_ > budget + slack ||
           (limits_.ram_states_max > 0 && ram_by_use_.size() > limits_.ram_states_max && slack == 0);
  };
  for (auto it = ram_by_use_.begin(); it != ram_by_use_.end() && over(0);) {
    const state_key key = (it++)->second;
    entry& e = entries_.at(key);
    if (e.writing || !e.loan.expired()) continue;
    if (e.dirty && !e.held && disk_works && worth_writing(key)) {
      if (writing_ < limits_.writes_max) {
        want_write(key, e, out);
        continue;
      }
      if (!over(limits_.dirty_bytes_max)) continue;
    }
    set_dirty(key, e, false);
    set_ram(key, e, nullptr);
    ++ram_drops_;
    erase_if_gone(key, &out);
  }
}

void tiered_cache::shrink_disk(std::int64_t now_ms, decisions& out) {
  const auto drop = [&](const state_key key) {
    set_disk(key, entries_.at(key), false, 0);
    ++disk_drops_;
    out.drop_disk.push_back(key);
    erase_if_gone(key, &out);
  };
  while (limits_.disk_age_ms > 0 && !disk_by_use_.empty()) {
    const state_key oldest = disk_by_use_.begin()->second;
    if (entries_.at(oldest).used_ms > now_ms - limits_.disk_age_ms) break;
    drop(oldest);
  }
  while (!disk_by_use_.empty() && (disk_bytes_ > limits_.disk_bytes_max ||
                                   (limits_.disk_states_max > 0 && disk_by_use_.size() > limits_.disk_states_max)))
    drop(std::get<state_key>(*disk_by_worth_.begin()));
}

tiered_cache::counts tiered_cache::count() const {
  counts c;
  c.vram = static_cast<std::uint32_t>(vram_.size());
  c.ram = static_cast<std::uint32_t>(ram_by_use_.size());
  c.disk = static_cast<std::uint32_t>(disk_by_use_.size());
  c.dirty = static_cast<std::uint32_t>(dirty_by_age_.size());
  c.writing = writing_;
  c.ram_bytes = ram_bytes_;
  c.disk_bytes = disk_bytes_;
  c.dirty_bytes = dirty_bytes_;
  c.ram_drops = ram_drops_;
  c.disk_drops = disk_drops_;
  if (!dirty_by_age_.empty()) c.oldest_dirty = dirty_by_age_.begin()->first;
  const auto oldest = [&](const by_use& order) {
    return order.empty() ? 0 : entries_.at(order.begin()->second).used_ms;
  };
  c.ram_oldest_use_ms = oldest(ram_by_use_);
  c.disk_oldest_use_ms = oldest(disk_by_use_);
  return c;
}

std::optional<std::string> tiered_cache::self_check() const {
  std::uint64_t ram = 0, disk = 0, dirty = 0, ram_states = 0, disk_states = 0;
  for (const auto& [key, e] : entries_) {
    if (e.ram) ram += bytes(e.ram), ++ram_states;
    if (e.disk) disk += e.disk_bytes, ++disk_states;
    if (e.dirty) dirty += bytes(e.ram);
    if (!e.ram && !e.disk) return "a state is in no tier";
    if (e.ram && !ram_by_use_.contains({e.used, key})) return "a state in RAM is in no list";
    if (e.disk && !(disk_by_use_.contains({e.used, key}) && disk_by_worth_.contains({e.on_disk, e.used, key})))
      return "a state on disk is in no list";
    if (e.writing && !e.ram) return "a state that is being written is not in RAM";
  }
  if (ram != ram_bytes_ || ram_states != ram_by_use_.size()) return "the count of states or bytes in RAM is wrong";
  if (disk != disk_bytes_ || disk_states != disk_by_use_.size() || disk_states != disk_by_worth_.size())
    return "the count of states or bytes on disk is wrong";
  if (dirty != dirty_bytes_) return "the count of bytes to write is wrong";
  return std::nullopt;
}

}  // namespace skein::persistence
