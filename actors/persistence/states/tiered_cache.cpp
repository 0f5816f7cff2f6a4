#include "actors/persistence/states/tiered_cache.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace skein::persistence {

// ---------------------------------------------------------------- indexes

void tiered_cache::set_ram(const state_key& key, entry& e, state_buffer state) {
  if (e.ram) ram_.remove(key, e.used, bytes(e.ram));
  e.ram = std::move(state);
  if (e.ram) ram_.add(key, e.used, bytes(e.ram));
  index(key, e);
}

void tiered_cache::set_disk(const state_key& key, entry& e, bool there, std::uint64_t disk_bytes) {
  disk_.remove(key, e.disk, e.used);
  if (there) disk_.add(key, e.disk, e.used, disk_bytes);
  index(key, e);
  rethin(key.owner);
}

void tiered_cache::set_used(const state_key& key, entry& e, std::int64_t now_ms) {
  const std::uint64_t before = std::exchange(e.used, ++uses_);
  ram_.touch(key, before, e.used);
  disk_.touch(key, e.disk, before, e.used);
  e.used_ms = now_ms;
}

/// Keeps versions_ in step with an entry.
void tiered_cache::index(const state_key& key, const entry& e) {
  if (e.ram || e.disk.is_there)
    versions_.add(key);
  else
    versions_.remove(key);
}

void tiered_cache::rethin(session_uid owner) {
  versions_.for_each_worth(
      owner, [this](const state_key& key) { return entries_.at(key).disk.is_there; },
      [this](const state_key& key, worth value) {
        entry& e = entries_.at(key);
        disk_.set_worth(key, e.disk, e.used, value);
      });
}

void tiered_cache::erase_if_gone(const state_key& key, decisions* told) {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return;
  const entry& e = it->second;
  if (e.ram || e.disk.is_there) return;
  if (told) told->lost.push_back(key);
  entries_.erase(it);
}

// ---------------------------------------------------------------- events

void tiered_cache::put(const state_key& key, state_buffer state, label what, bool writable, steady_time now,
                       std::int64_t now_ms) {
  entry& e = entries_[key];
  check(!e.ram && !e.disk.is_there, "a state is put once");
  e.what = std::move(what);
  set_used(key, e, now_ms);
  set_ram(key, e, std::move(state));
  if (has_disk()) writes_.add(key, e.write, bytes(e.ram), writable, now);
}

void tiered_cache::may_write(const state_key& key) {
  const auto it = entries_.find(key);
  if (it != entries_.end()) writes_.release(key, it->second.write);
}

void tiered_cache::found(const state_key& key, std::uint64_t bytes, std::int64_t used_ms) {
  entry& e = entries_[key];
  check(!e.ram && !e.disk.is_there, "a state is found once");
  set_used(key, e, used_ms);
  set_disk(key, e, true, bytes);
}

void tiered_cache::loaded(const state_key& key, state_buffer state, label what) {
  const auto it = entries_.find(key);
  if (it == entries_.end() || !it->second.disk.is_there || it->second.ram) return;
  it->second.what = std::move(what);
  set_ram(key, it->second, std::move(state));
}

bool tiered_cache::unreadable(const state_key& key) {
  const auto it = entries_.find(key);
  if (it == entries_.end() || !it->second.disk.is_there) return false;
  set_disk(key, it->second, false, 0);
  erase_if_gone(key);
  return true;
}

bool tiered_cache::written(const state_key& key, bool well, std::uint64_t bytes, steady_time now) {
  writes_.on_end();
  const auto it = entries_.find(key);
  if (it == entries_.end() || !it->second.write.is_writing()) return !well;
  entry& e = it->second;
  writes_.settle(key, e.write, this->bytes(e.ram), well, now);
  if (well) set_disk(key, e, true, bytes);
  return true;
}

void tiered_cache::slot_kept(const state_key& key, device_id device) { vram_[key] = device; }

void tiered_cache::slot_dropped(const state_key& key, device_id device) {
  if (device_of(key) == device) vram_.erase(key);
}

void tiered_cache::set_head(session_uid owner, version_id head, version_id broken) {
  if (versions_.set_head(owner, head, broken)) rethin(owner);
}

void tiered_cache::forget(const state_key& key) {
  vram_.erase(key);
  const auto it = entries_.find(key);
  if (it == entries_.end()) return;
  entry& e = it->second;
  if (e.write.is_dirty()) writes_.drop(key, e.write, bytes(e.ram));  // written() then returns false
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
  return it != entries_.end() && (it->second.ram || it->second.disk.is_there);
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
  for (const use_order* tier : {&ram_, &disk_.by_use()})
    if (!tier->empty() && (!least || *tier->begin() < *least)) least = *tier->begin();
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
  const auto oldest = writes_.oldest();
  return limits_.write_behind && oldest && writes_.has_room() ? *oldest + limits_.write_delay : steady_time::max();
}

bool tiered_cache::worth_writing(const state_key& key) const {
  return versions_.survives(key, [this](const state_key& other) {
    const entry& e = entries_.at(other);
    return e.disk.is_there || e.write.is_dirty();
  });
}

void tiered_cache::want_write(const state_key& key, entry& e, decisions& out) {
  writes_.begin(key, e.write, bytes(e.ram));
  out.write.push_back(key);
}

/// Heads are written first; states that would be thinned at once are not written at all.
void tiered_cache::write_behind(steady_time now, bool flush, decisions& out) {
  const auto due = [&] {
    const auto oldest = writes_.oldest();
    return oldest && writes_.has_room() &&
           (flush || (limits_.write_behind &&
                      (writes_.waiting_bytes() > limits_.dirty_bytes_max || *oldest + limits_.write_delay <= now)));
  };
  for (const bool heads : {true, false}) {
    if (!due()) return;
    const auto candidates = writes_.waiting();
    for (const auto& [since, key] : candidates) {
      if (!due()) return;
      if (versions_.is_head(key) != heads) continue;
      entry& e = entries_.at(key);
      if (worth_writing(key))
        want_write(key, e, out);
      else
        writes_.drop(key, e.write, bytes(e.ram));
    }
  }
}

void tiered_cache::shrink_ram(bool disk_works, decisions& out) {
  const std::size_t budget = limits_.ram_bytes_max - std::min(limits_.ram_bytes_max, reserved_);
  const auto over = [&](std::size_t slack) {
    return ram_.bytes() > budget + slack ||
           (limits_.ram_states_max > 0 && ram_.size() > limits_.ram_states_max && slack == 0);
  };
  for (auto it = ram_.begin(); it != ram_.end() && over(0);) {
    const state_key key = (it++)->second;
    entry& e = entries_.at(key);
    if (e.write.is_writing() || !e.loan.expired()) continue;
    if (e.write.phase.is(write_phase::waiting) && disk_works && worth_writing(key)) {
      if (writes_.has_room()) {
        want_write(key, e, out);
        continue;
      }
      if (!over(limits_.dirty_bytes_max)) continue;
    }
    writes_.drop(key, e.write, bytes(e.ram));
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
  while (limits_.disk_age_ms > 0 && !disk_.by_use().empty()) {
    const state_key oldest = disk_.by_use().begin()->second;
    if (entries_.at(oldest).used_ms > now_ms - limits_.disk_age_ms) break;
    drop(oldest);
  }
  const use_order& all = disk_.by_use();
  while (!all.empty() && (all.bytes() > limits_.disk_bytes_max ||
                          (limits_.disk_states_max > 0 && all.size() > limits_.disk_states_max)))
    drop(disk_.least());
}

tiered_cache::counts tiered_cache::count() const {
  counts c;
  c.vram = static_cast<std::uint32_t>(vram_.size());
  c.ram = static_cast<std::uint32_t>(ram_.size());
  c.disk = static_cast<std::uint32_t>(disk_.by_use().size());
  c.dirty = static_cast<std::uint32_t>(writes_.waiting().size());
  c.writing = writes_.writing();
  c.ram_bytes = ram_.bytes();
  c.disk_bytes = disk_.by_use().bytes();
  c.dirty_bytes = writes_.dirty_bytes();
  c.ram_drops = ram_drops_;
  c.disk_drops = disk_drops_;
  c.oldest_dirty = writes_.oldest();
  const auto oldest = [&](const use_order& order) {
    return order.empty() ? 0 : entries_.at(order.begin()->second).used_ms;
  };
  c.ram_oldest_use_ms = oldest(ram_);
  c.disk_oldest_use_ms = oldest(disk_.by_use());
  return c;
}

std::optional<std::string> tiered_cache::self_check() const {
  std::uint64_t ram = 0, disk = 0, dirty = 0, ram_states = 0, disk_states = 0;
  for (const auto& [key, e] : entries_) {
    if (e.ram) ram += bytes(e.ram), ++ram_states;
    if (e.disk.is_there) disk += e.disk.bytes, ++disk_states;
    if (!e.ram && !e.disk.is_there) return "a state is in no tier";
    if (e.ram && !ram_.contains(key, e.used)) return "a state in RAM is in no list";
    if (e.disk.is_there && !disk_.contains(key, e.disk, e.used)) return "a state on disk is in no list";
    if (e.write.is_dirty() && !e.ram) return "a state that is being written is not in RAM";
    if (e.write.is_dirty()) dirty += bytes(e.ram);
  }
  if (ram != ram_.bytes() || ram_states != ram_.size()) return "the count of states or bytes in RAM is wrong";
  if (disk != disk_.by_use().bytes() || !disk_.has_size(disk_states))
    return "the count of states or bytes on disk is wrong";
  if (dirty != writes_.dirty_bytes()) return "the count of bytes to write is wrong";
  return std::nullopt;
}

}  // namespace skein::persistence
