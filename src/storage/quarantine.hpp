#pragma once
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "storage/database_impl.hpp"

/// Damaged records, kept apart with the reason, so that somebody can look at them and nothing reads them by mistake.
namespace skein::storage {

/// What is kept at most; beyond it records stay where they are.
inline constexpr std::uint32_t set_aside_max = 4096;

/// Moves a record there and gives the error for the caller, damaged, which begins with `name`. What else goes with it:
/// `also`.
[[nodiscard]] error set_aside(database::impl& db, family where, std::string_view key, std::string_view record,
                              const std::string& name, const error& why,
                              const std::function<void(change_list&)>& also = {});

/// Why a record with this key, or with one that begins so, was set aside; ok when none was.
enum class keys_meant : std::uint8_t { exactly, beginning };
[[nodiscard]] result<void> none_set_aside(database::impl& db, family where, std::string_view key,
                                          const std::string& name, keys_meant which);

/// Key in the quarantine.
[[nodiscard]] std::string quarantine_key(family where, std::string_view key);

/// Whether a decoding error is a damage; other formats and models are well where they are.
[[nodiscard]] inline bool is_damage(const error& why) { return why.kind == error_kind::damaged; }

}  // namespace skein::storage
