#pragma once
#include <optional>

#include "base/result.hpp"
#include "storage/database/database.hpp"
#include "storage/sessions/session_file.hpp"
#include "storage/sessions/session_store.hpp"

/// Copies sessions between files and a database that no other process uses.
namespace skein::storage {

/// Exports a session with all its versions and optionally their stored states. Errors: not_found, and those of reading.
[[nodiscard]] result<session_file> take_out(database& db, session_store& store, const session_key& key,
                                            bool with_states);

/// Keys of the stored states of a session's versions, own and shared.
[[nodiscard]] result<std::vector<state_key>> stored_states(database& db, const session_store& store, session_uid uid);

/// The path from the beginning to a version as a session of its own, without states; nullopt if there is no such
/// version.
[[nodiscard]] std::optional<session_file> branch(const session_file& from, version_id version);

/// Stores the file as a new session. `shared`: states of other sessions that it shares. `fork_of`: the stored session
/// whose versions it shares; 0 if it is not a fork. Errors: conflict (the name exists and `replace` is not set),
/// invalid_argument (the name), and those of writing.
[[nodiscard]] result<session_record> put_in(database& db, session_store& store, session_file file,
                                            const session_key& as, bool replace, std::vector<state_key> shared = {},
                                            session_uid fork_of = 0);

}  // namespace skein::storage
