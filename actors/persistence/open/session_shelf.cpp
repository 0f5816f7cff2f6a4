#include "actors/persistence/open/session_shelf.hpp"

#include <iterator>

#include "actors/persistence/sessions/session_tree.hpp"

namespace skein::persistence {

void session_shelf::put(const session_record& record) {
  if (has_disk_) return;
  drop(record.uid);
  places_.push_back({record.uid, record.key, sizeof record + record.log_bytes + label_bytes(record)});
  by_uid_[record.uid] = std::prev(places_.end());
  bytes_ += places_.back().bytes;
}

void session_shelf::drop(session_uid uid) {
  const auto it = by_uid_.find(uid);
  if (it == by_uid_.end()) return;
  bytes_ -= it->second->bytes;
  places_.erase(it->second);
  by_uid_.erase(it);
}

}  // namespace skein::persistence
