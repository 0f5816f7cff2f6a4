#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "storage/database.hpp"
#include "storage/record_codec.hpp"

/// States as records, for tools that have no model.
namespace skein::storage {

/// none: there is no such state. Errors: damaged, conflict (another format).
[[nodiscard]] result<std::optional<std::string>> read_raw_state(database& db, const state_key& key);
/// Writes a record under the key in its label, with an entry in the index. Errors: as state_store::put.
[[nodiscard]] result<void> write_raw_state(database& db, const state_entry& entry, std::string_view record);

/// Entries of sessions' states or of prefixes. Damaged ones are set aside and left out.
enum class states_of : std::uint8_t { sessions, prefixes };
[[nodiscard]] result<std::vector<state_entry>> state_entries(database& db, states_of which);

}  // namespace skein::storage
