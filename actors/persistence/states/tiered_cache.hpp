#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "actors/persistence/states/disk_order.hpp"
#include "actors/persistence/states/state_versions.hpp"
#include "actors/persistence/states/use_order.hpp"
#include "actors/persistence/states/write_queue.hpp"

namespace skein::persistence {

using storage::session_uid;

/// Limits of the tiers; a count or an age of 0 means no limit.
struct tier_limits {
  std::size_t ram_bytes_max = std::size_t{1} << 30;
  std::uint32_t ram_states_max = 0;
  std::uint64_t disk_bytes_max = 0;  ///< 0: there is no disk
  std::uint32_t disk_states_max = 0;
  std::int64_t disk_age_ms = 0;                         ///< states on disk unused for longer are dropped
  bool write_behind = true;                             ///< false: write only when RAM is short and at shutdown
  duration write_delay = std::chrono::seconds(1);       ///< how long a new state may wait to be written
  std::size_t dirty_bytes_max = std::size_t{64} << 20;  ///< waiting to be written; also RAM's excess over its budget
  std::uint32_t writes_max = 2;                         ///< at the same time
  bool thin = true;  ///< the states of one owner are versions, dropped as `thinnable` says
};

/// Tracks which states are in which tier, and decides what moves when. L1 is device memory, which it only tracks; L2 is
/// RAM, whose buffers it owns; L3 is the disk, for which it returns decisions. States are immutable, so a move is a
/// copy followed by a drop, and copies are never stale. A state in use stays in RAM. No I/O and no clock: times and
/// results are passed in, decisions are returned.
class tiered_cache {
 public:
  explicit tiered_cache(const tier_limits& limits)
      : limits_(limits), versions_(limits.thin), writes_(limits.writes_max) {}

  struct label {
    tenant_id tenant;
    std::uint64_t tokens = 0;
    std::string model;  ///< identity of the state's model
  };

  // ---- events ----
  /// Adds a new state. If `writable` is false, it is not written before may_write().
  void put(const state_key& key, state_buffer state, label what, bool writable, steady_time now, std::int64_t now_ms);
  void may_write(const state_key& key);
  /// A state was found on disk at start.
  void found(const state_key& key, std::uint64_t bytes, std::int64_t used_ms);
  /// A state was read from disk.
  void loaded(const state_key& key, state_buffer state, label what);
  /// The copy on disk cannot be used. False: there was none.
  bool unreadable(const state_key& key);
  /// A write requested by plan() has ended. False: the state was erased meanwhile, and its copy must be removed from
  /// disk.
  [[nodiscard]] bool written(const state_key& key, bool well, std::uint64_t bytes, steady_time now);
  /// A device that no longer has a state which another device has since then changes nothing.
  void slot_kept(const state_key& key, device_id device);
  void slot_dropped(const state_key& key, device_id device);
  /// `broken`: a version ahead of the head that may be continued; 0: none.
  void set_head(session_uid owner, version_id head, version_id broken = 0);
  void forget(const state_key& key);
  /// Forgets the states of a session, in RAM or on disk, for which `goes` returns true.
  void forget_owner(session_uid owner, const std::function<bool(const state_key&)>& goes);

  // ---- queries ----
  [[nodiscard]] tier fastest(const state_key& key) const;
  /// The device that has the state in a slot.
  [[nodiscard]] std::optional<device_id> device_of(const state_key& key) const;
  [[nodiscard]] bool readable(const state_key& key) const;
  /// The key of a session's version whose state is in RAM or on disk.
  [[nodiscard]] std::optional<state_key> find(session_uid owner, version_id version) const {
    return versions_.find(owner, version);
  }
  /// The states of a session that are in RAM or on disk, by version.
  [[nodiscard]] std::vector<state_key> states_of(session_uid owner) const { return versions_.of(owner); }
  /// The state, if it is in RAM. It is in use, and stays in RAM, until the last copy of the returned pointer is gone.
  [[nodiscard]] state_buffer lend(const state_key& key, std::int64_t now_ms);
  /// Marks a state as used now, in whatever tier it is.
  void touch(const state_key& key, std::int64_t now_ms);
  /// The state in RAM, for writing or copying it; does not count as a use.
  [[nodiscard]] state_buffer buffer(const state_key& key) const;

  /// The least recently used state in RAM or on disk.
  [[nodiscard]] std::optional<state_key> least_used() const;

  [[nodiscard]] label label_of(const state_key& key) const;

  // ---- decisions ----
  /// Reserves a part of the RAM budget for states that are being read.
  void reserve(std::size_t bytes) { reserved_ = bytes; }
  struct decisions {
    std::vector<state_key> write;      ///< write to disk; report each result with written()
    std::vector<state_key> drop_disk;  ///< remove from disk; already removed here
    std::vector<state_key> lost;       ///< no longer in RAM or on disk
  };
  /// Also drops states from RAM. `disk_works` false: nothing is written. `flush`: write everything that may be written.
  [[nodiscard]] decisions plan(steady_time now, std::int64_t now_ms, bool disk_works, bool flush);
  /// When plan() may next request a write without another event.
  [[nodiscard]] steady_time next_write() const;

  struct counts {
    std::uint32_t vram = 0, ram = 0, disk = 0, dirty = 0, writing = 0;
    std::uint64_t ram_bytes = 0, disk_bytes = 0, dirty_bytes = 0;
    std::uint64_t ram_drops = 0, disk_drops = 0;
    std::optional<steady_time> oldest_dirty;
    std::int64_t ram_oldest_use_ms = 0, disk_oldest_use_ms = 0;  ///< 0: the tier is empty
  };
  [[nodiscard]] counts count() const;
  [[nodiscard]] std::optional<std::string> self_check() const;

 private:
  struct entry {
    label what;
    state_buffer ram;
    std::weak_ptr<const model::state_value> loan;
    disk_copy disk;
    write_job write;
    std::uint64_t used = 0;  // sequence number of the last use
    std::int64_t used_ms = 0;
  };

  static std::size_t bytes(const state_buffer& b) { return b->bytes.size(); }
  [[nodiscard]] bool has_disk() const { return limits_.disk_bytes_max > 0; }
  void set_ram(const state_key& key, entry& e, state_buffer state);
  void set_disk(const state_key& key, entry& e, bool there, std::uint64_t disk_bytes);
  void set_used(const state_key& key, entry& e, std::int64_t now_ms);
  void index(const state_key& key, const entry& e);
  void rethin(session_uid owner);
  void erase_if_gone(const state_key& key, decisions* told = nullptr);
  [[nodiscard]] bool worth_writing(const state_key& key) const;
  void want_write(const state_key& key, entry& e, decisions& out);
  void write_behind(steady_time now, bool flush, decisions& out);
  void shrink_ram(bool disk_works, decisions& out);
  void shrink_disk(std::int64_t now_ms, decisions& out);

  tier_limits limits_;
  std::unordered_map<state_key, entry> entries_;   // in RAM or on disk
  std::unordered_map<state_key, device_id> vram_;  // in a slot of that device
  state_versions versions_;                        // of entries_
  use_order ram_;
  disk_order disk_;
  write_queue writes_;
  std::uint64_t uses_ = 0;
  std::size_t reserved_ = 0;
  std::uint64_t ram_drops_ = 0, disk_drops_ = 0;
};

}  // namespace skein::persistence
