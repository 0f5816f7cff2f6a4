#pragma once
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "storage/database/database_impl.hpp"

/// Damaged records, moved aside with the reason, so that an operator can inspect them and no code reads them by
/// mistake.
namespace skein::storage {

/// Capacity in records; if it is full, further damaged records stay where they are.
inline constexpr std::uint32_t set_aside_max = 4096;

/// Moves a record to the quarantine and returns the error for the caller: damaged, beginning with `name`. `also` adds
/// changes to the same write.
[[nodiscard]] error set_aside(database::impl& db, family where, std::string_view key, std::string_view record,
                              const std::string& name, const error& why,
                              const std::function<void(change_list&)>& also = {});

/// Succeeds unless a record with this key, or with a key that begins with it, was set aside; then the error says why.
enum class keys_meant : std::uint8_t { exactly, beginning };
[[nodiscard]] result<void> none_set_aside(database::impl& db, family where, std::string_view key,
                                          const std::string& name, keys_meant which);

/// The record's key in the quarantine.
[[nodiscard]] std::string quarantine_key(family where, std::string_view key);

/// Whether a decoding error means damage; records of other formats and models are intact and stay.
[[nodiscard]] inline bool is_damage(const error& why) { return why.kind == error_kind::damaged; }

}  // namespace skein::storage
