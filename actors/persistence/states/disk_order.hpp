#pragma once
#include <cstdint>
#include <set>
#include <tuple>

#include "actors/persistence/states/state_versions.hpp"
#include "actors/persistence/states/use_order.hpp"
#include "storage/records/records.hpp"

namespace skein::persistence {

/// A state's copy on disk.
struct disk_copy {
  bool is_there = false;
  worth value = worth::newest;
  std::uint64_t bytes = 0;
};

/// The order in which states are dropped from disk: by age, and by worth.
class disk_order {
 public:
  void add(const storage::state_key& key, disk_copy& copy, std::uint64_t used, std::uint64_t bytes);
  /// No effect if there is no copy.
  void remove(const storage::state_key& key, disk_copy& copy, std::uint64_t used);
  void touch(const storage::state_key& key, const disk_copy& copy, std::uint64_t before, std::uint64_t used);
  void set_worth(const storage::state_key& key, disk_copy& copy, std::uint64_t used, worth value);

  [[nodiscard]] const use_order& by_use() const { return by_use_; }
  /// The first one to drop; there must be one.
  [[nodiscard]] storage::state_key least() const { return std::get<storage::state_key>(*by_worth_.begin()); }
  /// Whether the copy is listed as it is.
  [[nodiscard]] bool contains(const storage::state_key& key, const disk_copy& copy, std::uint64_t used) const;
  /// Whether both orders have that many states.
  [[nodiscard]] bool has_size(std::uint64_t states) const {
    return by_use_.size() == states && by_worth_.size() == states;
  }

 private:
  use_order by_use_;
  std::set<std::tuple<worth, std::uint64_t, storage::state_key>> by_worth_;
};

}  // namespace skein::persistence
