#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "storage/database/database.hpp"
#include "storage/records/records.hpp"

namespace skein::storage {

/// Notes of turns that run, one for each turn, so that its answer so far survives the process. Errors of writes: as
/// session_store.
class running_notes {
 public:
  explicit running_notes(std::shared_ptr<database> db) : db_(std::move(db)) {}

  /// Those of a session, by number. Damaged notes are set aside and left out.
  [[nodiscard]] result<std::vector<running_turn>> of(session_uid uid);
  /// Their keys.
  [[nodiscard]] result<std::vector<std::string>> keys_of(session_uid uid);
  /// Replaces the turn's previous note.
  [[nodiscard]] result<void> note(session_uid uid, const running_turn& turn);
  [[nodiscard]] result<void> forget(session_uid uid, version_id number);
  /// Removes all notes of a session.
  [[nodiscard]] result<void> forget(session_uid uid);

 private:
  std::shared_ptr<database> db_;
};

}  // namespace skein::storage
