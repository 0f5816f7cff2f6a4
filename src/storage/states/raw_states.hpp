#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "storage/database/database.hpp"
#include "storage/database/database_impl.hpp"
#include "storage/records/record_codec.hpp"

/// State records in a database: each is split into parts and has an entry in the index. For state_store, and for tools
/// without a model.
namespace skein::storage {

/// Size of a part: small enough to stay in the CPU cache while it is copied, and to need no freshly mapped memory.
inline constexpr std::size_t state_part_bytes = 1u << 20;

/// The index entry of a complete state; nullopt if there is none. Errors: damaged.
[[nodiscard]] result<std::optional<state_entry>> find_entry(database::impl& db, const state_key& key);

/// Writes a record, and its entry with the record's size. The record survives the process once this returns. Errors: as
/// state_store::put.
[[nodiscard]] result<void> write_raw_state(database::impl& db, state_entry entry, std::string_view record);

/// Reads the record of an entry into `record`, reusing its memory. The contents are not verified. Errors: damaged (a
/// part is missing), io.
[[nodiscard]] result<void> read_raw_state(database::impl& db, const state_entry& entry, std::string& record);

/// Likewise, but verifies that it is the state record (state_record) of this state. Errors: damaged, io, conflict
/// (another format).
[[nodiscard]] result<std::string> checked_raw_state(database::impl& db, const state_entry& entry);

/// Erases all parts and the entry.
void erase_state(change_list& changes, const state_entry& entry);

/// Index entries of all sessions' states, of one session's states, or of prefixes, including incomplete ones. Damaged
/// entries are set aside and left out.
[[nodiscard]] result<std::vector<state_entry>> entries_of_sessions(database::impl& db);
[[nodiscard]] result<std::vector<state_entry>> entries_of_session(database::impl& db, session_uid uid);
[[nodiscard]] result<std::vector<state_entry>> entries_of_prefixes(database::impl& db);

/// For messages: "state of version 3 of session number 7".
[[nodiscard]] std::string name_of(const state_key& key);

}  // namespace skein::storage
