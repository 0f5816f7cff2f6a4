#include "storage/database/quarantine.hpp"

#include "base/log/log.hpp"
#include "storage/records/record_codec.hpp"
#include "storage/records/storage_keys.hpp"
#include "storage/records/wall_time.hpp"

namespace skein::storage {

std::string quarantine_key(family where, std::string_view key) {
  std::string made(1, static_cast<char>(where));
  return made.append(key);
}

error set_aside(database::impl& db, family where, std::string_view key, std::string_view record,
                const std::string& name, const error& why, const std::function<void(change_list&)>& also) {
  error told{error_kind::damaged, name + ": " + why.message, {}};
  log::error("a damaged record was found", {{"record", name}, {"why", why.message}});
  if (db.options.read_only) return told;
  if (db.records_set_aside >= set_aside_max) {
    log::warning("the quarantine is full; the record stays where it is", {{"records", set_aside_max}});
    return told;
  }
  const auto moved = db.write(safety::logged, [&](change_list& changes) {
    changes.put(family::quarantine, quarantine_key(where, key),
                encode_set_aside({why.message, wall_time_ms(), std::string(record)}));
    changes.erase(where, key);
    if (also) also(changes);
  });
  if (moved)
    ++db.records_set_aside;
  else
    log::warning("a damaged record could not be set aside", {{"record", name}, {"why", moved.error().message}});
  return told;
}

result<void> none_set_aside(database::impl& db, family where, std::string_view key, const std::string& name,
                            keys_meant which) {
  if (db.records_set_aside == 0) return {};
  const std::string first = quarantine_key(where, key);
  const std::string end = which == keys_meant::exactly ? first + '\0' : keys::after_all(first);
  std::string reason;
  const auto looked = db.scan(family::quarantine, first, end, [&](auto, std::string_view value) {
    const auto record = decode_set_aside(value);
    reason = record ? record->reason : record.error().message;
    return false;
  });
  if (!looked) return looked.error();
  if (reason.empty()) return {};
  return error{error_kind::damaged, name + ": " + reason + "; it was set aside", {}};
}

}  // namespace skein::storage
