#pragma once
#include <cstdint>
#include <list>
#include <map>

#include "storage/records/records.hpp"

namespace skein::persistence {

using storage::session_key;
using storage::session_record;
using storage::session_uid;

/// Without a disk: the sessions by last use, so that the memory they take can be limited. With a disk, it stays empty.
class session_shelf {
 public:
  struct place {
    session_uid uid;
    session_key key;
    std::uint64_t bytes;
  };

  explicit session_shelf(bool has_disk) : has_disk_(has_disk) {}

  /// The session was changed or used.
  void put(const session_record& record);
  void drop(session_uid uid);

  /// Least recently used first.
  [[nodiscard]] const std::list<place>& places() const { return places_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  const bool has_disk_;
  std::list<place> places_;
  std::map<session_uid, std::list<place>::iterator> by_uid_;
  std::uint64_t bytes_ = 0;
};

}  // namespace skein::persistence
