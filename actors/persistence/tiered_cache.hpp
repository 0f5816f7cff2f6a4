#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/persistence/persistence_mailbox.hpp"

namespace skein::persistence {

using storage::session_uid;

/// Ceilings of the tiers; 0 in a count or an age: no limit.
struct tier_limits {
  std::size_t ram_bytes_max = std::size_t{1} << 30;
  std::uint32_t ram_states_max = 0;
  std::uint64_t disk_bytes_max = 0;  ///< 0: there is no disk
  std::uint32_t disk_states_max = 0;
  std::int64_t disk_age_ms = 0;                         ///< a state on disk that nobody used for so long goes
  bool write_behind = true;                             ///< false: a state is written when RAM is short, and at the end
  duration write_delay = std::chrono::seconds(1);       ///< that a new state may wait to be written
  std::size_t dirty_bytes_max = std::size_t{64} << 20;  ///< that may wait; also how far RAM may be over its budget
  std::uint32_t writes_max = 2;                         ///< at once
  bool thin = true;  ///< states of one owner are versions, of which old ones go first
};

/// Which states are in which tier, and what moves when (design section 6): L1 is the device's memory, of which it only
/// hears, L2 RAM, whose buffers it holds, L3 the disk, of which it says what shall happen. A state never changes, so a
/// move is a copy, then a drop, and no copy is ever stale. A state that somebody uses stays in RAM. Pure: time and
/// results come in, decisions go out.
class tiered_cache {
 public:
  explicit tiered_cache(const tier_limits& limits) : limits_(limits) {}

  struct label {
    tenant_id tenant;
    std::uint64_t tokens = 0;
    std::string model;  ///< identity of the one whose state it is
  };

  // ---- what happened ----
  /// A new state. With `writable` false it is not written before may_write().
  void put(const state_key& key, state_buffer state, label what, bool writable, steady_time now, std::int64_t now_ms);
  void may_write(const state_key& key);
  /// Found on disk at start.
  void found(const state_key& key, std::uint64_t bytes, std::int64_t used_ms);
  /// Read from disk.
  void loaded(const state_key& key, state_buffer state, label what);
  /// What the disk has under this key is no use.
  void unreadable(const state_key& key);
  /// The write that plan() wanted is over. False: nobody wants the state any more, and the disk has it.
  [[nodiscard]] bool written(const state_key& key, bool well, std::uint64_t bytes, steady_time now);
  void slot_kept(const state_key& key);
  void slot_dropped(const state_key& key);
  void set_head(session_uid owner, version_id head);
  void forget(const state_key& key);
  /// Those of a session's states that are in RAM or on disk and for which `goes` says so.
  void forget_owner(session_uid owner, const std::function<bool(const state_key&)>& goes);

  // ---- questions ----
  [[nodiscard]] tier fastest(const state_key& key) const;
  [[nodiscard]] bool readable(const state_key& key) const;
  /// The key of a session's version whose state is in RAM or on disk.
  [[nodiscard]] std::optional<state_key> find(session_uid owner, version_id version) const;
  /// The state, if it is in RAM. It counts as in use, and stays there, until the last copy of what this returns is
  /// gone.
  [[nodiscard]] state_buffer lend(const state_key& key, std::int64_t now_ms);
  /// Used just now, wherever it is.
  void touch(const state_key& key, std::int64_t now_ms);
  /// For writing it to disk, or under a second key; not a use.
  [[nodiscard]] state_buffer buffer(const state_key& key) const;

  /// What nobody has used for the longest time, of RAM and disk.
  [[nodiscard]] std::optional<state_key> least_used() const;

  [[nodiscard]] label label_of(const state_key& key) const;

  // ---- decisions ----
  /// So much of the budget in RAM is for states that are being read.
  void reserve(std::size_t bytes) { reserved_ = bytes; }
  struct decisions {
    std::vector<state_key> write;      ///< to disk; answer each with written()
    std::vector<state_key> drop_disk;  ///< from disk; done as soon as said
    std::vector<state_key> lost;       ///< in neither RAM nor disk since now
  };
  /// RAM is dropped here. `disk_works` false: nothing is written. `flush`: all that may be written is wanted now.
  [[nodiscard]] decisions plan(steady_time now, std::int64_t now_ms, bool disk_works, bool flush);
  /// When plan() may have something to write although nothing happens.
  [[nodiscard]] steady_time next_write() const;

  struct counts {
    std::uint32_t vram = 0, ram = 0, disk = 0, dirty = 0, writing = 0;
    std::uint64_t ram_bytes = 0, disk_bytes = 0, dirty_bytes = 0;
    std::uint64_t ram_drops = 0, disk_drops = 0;
    std::optional<steady_time> oldest_dirty;
  };
  [[nodiscard]] counts count() const;
  [[nodiscard]] std::optional<std::string> self_check() const;

 private:
  /// On disk, what goes first.
  enum class worth : std::uint8_t { thinnable, old, newest };
  struct entry {
    label what;
    state_buffer ram;
    std::weak_ptr<const std::vector<float>> loan;
    bool vram = false, disk = false, dirty = false, held = false, writing = false;
    worth on_disk = worth::newest;  // of those on disk, how dear it is
    std::uint64_t disk_bytes = 0;
    std::uint64_t used = 0;  // a count that only grows
    std::int64_t used_ms = 0;
    steady_time dirty_since{};
  };
  struct session {
    version_id head = 0;
    std::map<version_id, state_key> versions;  // in RAM or on disk
  };
  using by_use = std::set<std::pair<std::uint64_t, state_key>>;
  using entries = std::unordered_map<state_key, entry>;

  static std::size_t bytes(const state_buffer& b) { return b->size() * sizeof(float); }
  [[nodiscard]] bool has_disk() const { return limits_.disk_bytes_max > 0; }
  void set_ram(const state_key& key, entry& e, state_buffer state);
  void set_disk(const state_key& key, entry& e, bool there, std::uint64_t disk_bytes);
  void set_dirty(const state_key& key, entry& e, bool dirty);
  void set_used(const state_key& key, entry& e, std::int64_t now_ms);
  void set_worth(const state_key& key, entry& e, worth w);
  void index(const state_key& key, const entry& e);
  void rethin(session_uid owner);
  void erase_if_gone(const state_key& key, decisions* told = nullptr);
  [[nodiscard]] bool worth_writing(const state_key& key) const;
  void want_write(const state_key& key, entry& e, decisions& out);
  void write_behind(steady_time now, bool flush, decisions& out);
  void shrink_ram(bool disk_works, decisions& out);
  void shrink_disk(std::int64_t now_ms, decisions& out);

  tier_limits limits_;
  entries entries_;
  std::map<session_uid, session> sessions_;
  by_use ram_by_use_, disk_by_use_;
  std::set<std::tuple<worth, std::uint64_t, state_key>> disk_by_worth_;
  std::set<std::pair<steady_time, state_key>> dirty_by_age_;
  std::uint64_t uses_ = 0, ram_bytes_ = 0, disk_bytes_ = 0, dirty_bytes_ = 0, writing_bytes_ = 0;
  std::size_t reserved_ = 0;
  std::uint32_t vram_ = 0, writing_ = 0;
  std::uint64_t ram_drops_ = 0, disk_drops_ = 0;
};

}  // namespace skein::persistence
