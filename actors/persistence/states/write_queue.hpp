#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "actors/checked_phase.hpp"
#include "base/clock.hpp"
#include "storage/records/records.hpp"

namespace skein::persistence {

/// Where a state in RAM is on its way to the disk.
enum class write_phase : std::uint8_t {
  clean,    ///< it is on disk, or will not be written
  held,     ///< it may not be written yet
  waiting,  ///< in the queue
  writing,
};

[[nodiscard]] constexpr bool may_follow(write_phase from, write_phase to) {
  using enum write_phase;
  switch (from) {
    case clean: return to == held || to == waiting;
    case held: return to == waiting || to == clean;
    case waiting: return to == writing || to == clean;
    case writing: return to == waiting || to == clean;
  }
  return false;
}

/// The part of a state's entry that write_queue changes.
struct write_job {
  checked_phase<write_phase> phase{write_phase::clean};
  steady_time since{};  ///< waiting since
  [[nodiscard]] bool is_dirty() const { return !phase.is(write_phase::clean); }
  [[nodiscard]] bool is_writing() const { return phase.is(write_phase::writing); }
};

/// States in RAM that are to be written to disk, the oldest first. Counts the writes that run, also those of states
/// that were dropped meanwhile.
class write_queue {
 public:
  /// `writes_max`: writes at the same time.
  explicit write_queue(std::uint32_t writes_max) : writes_max_(writes_max) {}

  /// A new state. `writable` false: it waits only after release().
  void add(const storage::state_key& key, write_job& job, std::size_t bytes, bool writable, steady_time now);
  /// No effect unless it is held.
  void release(const storage::state_key& key, write_job& job);
  void begin(const storage::state_key& key, write_job& job, std::size_t bytes);
  /// A write has ended, perhaps of a state that was dropped meanwhile.
  void on_end();
  /// That of a state that is still there. If it failed, the state waits again.
  void settle(const storage::state_key& key, write_job& job, std::size_t bytes, bool well, steady_time now);
  /// Makes a state clean: it will not be written, or its RAM is freed.
  void drop(const storage::state_key& key, write_job& job, std::size_t bytes);

  using order = std::set<std::pair<steady_time, storage::state_key>>;
  [[nodiscard]] const order& waiting() const { return waiting_; }
  [[nodiscard]] std::optional<steady_time> oldest() const;
  /// Another write may begin.
  [[nodiscard]] bool has_room() const { return writing_ < writes_max_; }
  [[nodiscard]] std::uint32_t writing() const { return writing_; }
  /// Bytes of all states that are not clean.
  [[nodiscard]] std::uint64_t dirty_bytes() const { return dirty_bytes_; }
  /// The same without those that are being written.
  [[nodiscard]] std::uint64_t waiting_bytes() const { return dirty_bytes_ - writing_bytes_; }

 private:
  const std::uint32_t writes_max_;
  order waiting_;
  std::uint64_t dirty_bytes_ = 0, writing_bytes_ = 0;
  std::uint32_t writing_ = 0;
};

}  // namespace skein::persistence
