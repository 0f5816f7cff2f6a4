#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "storage/database.hpp"
#include "storage/database_impl.hpp"
#include "storage/record_codec.hpp"

/// State records in a database: each in parts, with an entry in the index. For state_store, and for tools that have no
/// model.
namespace skein::storage {

/// What a part holds: few enough bytes that they are still in the processor's cache when they are copied, and that
/// nobody has to take fresh memory for them.
inline constexpr std::size_t state_part_bytes = 1u << 20;

/// What the index says of a state that is complete; none: there is no such state. Errors: damaged.
[[nodiscard]] result<std::optional<state_entry>> find_entry(database::impl& db, const state_key& key);

/// Writes a record, and its entry with the record's size. It survives the process when this returns. Errors: as
/// state_store::put.
[[nodiscard]] result<void> write_raw_state(database::impl& db, state_entry entry, std::string_view record);

/// Reads the record of an entry into `record`, whose memory is used again. Nothing in it is checked. Errors: damaged
/// (a part is missing), io.
[[nodiscard]] result<void> read_raw_state(database::impl& db, const state_entry& entry, std::string& record);

/// Likewise, but it is a state record (state_record) and that of this state. Errors: damaged, io, conflict (another
/// format).
[[nodiscard]] result<std::string> checked_raw_state(database::impl& db, const state_entry& entry);

/// Erases all parts and the entry.
void erase_state(change_list& changes, const state_entry& entry);

/// Entries of sessions' states, of one session's, or of prefixes, incomplete ones too. Damaged ones are set aside and
/// left out.
[[nodiscard]] result<std::vector<state_entry>> entries_of_sessions(database::impl& db);
[[nodiscard]] result<std::vector<state_entry>> entries_of_session(database::impl& db, session_uid uid);
[[nodiscard]] result<std::vector<state_entry>> entries_of_prefixes(database::impl& db);

/// For messages: "state of version 3 of session number 7".
[[nodiscard]] std::string name_of(const state_key& key);

}  // namespace skein::storage
