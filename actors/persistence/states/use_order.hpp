#pragma once
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "storage/records/records.hpp"

namespace skein::persistence {

/// The states of one tier in the order of their last use, and their bytes. A use is a number that grows.
class use_order {
 public:
  void add(const storage::state_key& key, std::uint64_t used, std::uint64_t bytes) {
    states_.insert({used, key});
    bytes_ += bytes;
  }
  void remove(const storage::state_key& key, std::uint64_t used, std::uint64_t bytes) {
    states_.erase({used, key});
    bytes_ -= bytes;
  }
  /// The state was used again; false: it is not in this tier.
  bool touch(const storage::state_key& key, std::uint64_t before, std::uint64_t used) {
    if (states_.erase({before, key}) == 0) return false;
    states_.insert({used, key});
    return true;
  }

  [[nodiscard]] std::size_t size() const { return states_.size(); }
  [[nodiscard]] bool empty() const { return states_.empty(); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] bool contains(const storage::state_key& key, std::uint64_t used) const {
    return states_.contains({used, key});
  }
  /// The least recently used one comes first.
  [[nodiscard]] auto begin() const { return states_.begin(); }
  [[nodiscard]] auto end() const { return states_.end(); }

 private:
  std::set<std::pair<std::uint64_t, storage::state_key>> states_;
  std::uint64_t bytes_ = 0;
};

}  // namespace skein::persistence
