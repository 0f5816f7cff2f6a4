#include "storage/sessions/running_notes.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "storage/database/database_impl.hpp"
#include "storage/database/quarantine.hpp"
#include "storage/records/record_codec.hpp"
#include "storage/records/session_names.hpp"
#include "storage/records/storage_keys.hpp"
#include "storage/sessions/record_scan.hpp"

namespace skein::storage {

/// A note of an older program has only the session number as its key: a session had one running turn at a time.
result<std::vector<running_turn>> running_notes::of(session_uid uid) {
  auto& db = db_->internals();
  const std::string first = keys::of_number(uid);
  std::vector<running_turn> all;
  std::vector<unreadable> bad;
  const auto looked =
      db.scan(family::running, first, keys::after_all(first), [&](std::string_view key, std::string_view value) {
        auto turn = decode_running(value, uid);
        if (turn)
          all.push_back(std::move(*turn));
        else if (is_damage(turn.error()))
          bad.push_back({std::string(key), std::string(value), turn.error()});
        return true;
      });
  if (!looked) return looked.error();
  for (const auto& one : bad)
    (void)set_aside(db, family::running, one.key, one.record, "running turn of " + name_of(uid), one.why);
  std::ranges::sort(all, {}, [](const running_turn& turn) { return turn.so_far.id; });
  return all;
}

result<std::vector<std::string>> running_notes::keys_of(session_uid uid) {
  return keys_below(db_->internals(), family::running, keys::of_number(uid));
}

result<void> running_notes::note(session_uid uid, const running_turn& turn) {
  return db_->internals().write(safety::logged, [&](change_list& changes) {
    changes.put(family::running, keys::of_version(uid, turn.so_far.id), encode_running(uid, turn));
  });
}

result<void> running_notes::forget(session_uid uid, version_id number) {
  return db_->internals().write(
      safety::logged, [&](change_list& changes) { changes.erase(family::running, keys::of_version(uid, number)); });
}

result<void> running_notes::forget(session_uid uid) {
  const auto notes = keys_of(uid);
  if (!notes) return notes.error();
  if (notes->empty()) return {};
  return db_->internals().write(safety::logged, [&](change_list& changes) {
    for (const auto& key : *notes) changes.erase(family::running, key);
  });
}

}  // namespace skein::storage
