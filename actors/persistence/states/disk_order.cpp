#include "actors/persistence/states/disk_order.hpp"

namespace skein::persistence {

using storage::state_key;

void disk_order::add(const state_key& key, disk_copy& copy, std::uint64_t used, std::uint64_t bytes) {
  copy = {true, worth::newest, bytes};
  by_use_.add(key, used, bytes);
  by_worth_.insert({copy.value, used, key});
}

void disk_order::remove(const state_key& key, disk_copy& copy, std::uint64_t used) {
  if (!copy.is_there) return;
  by_use_.remove(key, used, copy.bytes);
  by_worth_.erase({copy.value, used, key});
  copy.is_there = false;
  copy.bytes = 0;
}

void disk_order::touch(const state_key& key, const disk_copy& copy, std::uint64_t before, std::uint64_t used) {
  if (!by_use_.touch(key, before, used)) return;
  by_worth_.erase({copy.value, before, key});
  by_worth_.insert({copy.value, used, key});
}

void disk_order::set_worth(const state_key& key, disk_copy& copy, std::uint64_t used, worth value) {
  if (copy.value == value) return;
  by_worth_.erase({copy.value, used, key});
  copy.value = value;
  by_worth_.insert({copy.value, used, key});
}

bool disk_order::contains(const state_key& key, const disk_copy& copy, std::uint64_t used) const {
  return by_use_.contains(key, used) && by_worth_.contains({copy.value, used, key});
}

}  // namespace skein::persistence
