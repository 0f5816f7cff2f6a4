#pragma once
#include <optional>

#include "base/result.hpp"
#include "storage/database.hpp"
#include "storage/session_file.hpp"
#include "storage/session_store.hpp"

/// Sessions between a database that nobody else uses and files.
namespace skein::storage {

/// A session with all its versions and, if wished, the states that are stored of them. Errors: not_found, and those of
/// reading.
[[nodiscard]] result<session_file> take_out(database& db, session_store& store, const session_key& key,
                                            bool with_states);

/// The stored states of a session's versions, its own and those that it shares.
[[nodiscard]] result<std::vector<state_key>> stored_states(database& db, const session_store& store, session_uid uid);

/// The way from the beginning to a version as a session by itself, without states; nothing: there is no such version.
[[nodiscard]] std::optional<session_file> branch(const session_file& from, version_id version);

/// Stores it as a new session, which shares some states of others. Errors: conflict (there is one of that name, and
/// `replace` is not set), invalid_argument (the name), and those of writing.
[[nodiscard]] result<session_record> put_in(database& db, session_store& store, session_file file,
                                            const session_key& as, bool replace, std::vector<state_key> shared = {});

}  // namespace skein::storage
