#pragma once
#include <span>
#include <string>

#include "storage/records/records.hpp"
#include "storage/records/stored_amount.hpp"
#include "storage/repair/repair.hpp"
#include "storage/repair/verify.hpp"

/// The output of `skein state`: lines for people, JSON for programs. Neither contains conversation texts.
namespace skein::cli {

[[nodiscard]] std::string sessions_text(std::span<const storage::session_record> sessions);
/// A line for each tenant.
[[nodiscard]] std::string amounts_text(const storage::tenant_amounts& amounts);
[[nodiscard]] std::string sessions_json(std::span<const storage::session_record> sessions);

/// `stored`: keys of the stored states.
[[nodiscard]] std::string session_text(const storage::session_record& session,
                                       std::span<const storage::version_record> versions,
                                       std::span<const storage::state_key> stored);
[[nodiscard]] std::string session_json(const storage::session_record& session,
                                       std::span<const storage::version_record> versions,
                                       std::span<const storage::state_key> stored);

[[nodiscard]] std::string verification_text(const storage::verification& found);
[[nodiscard]] std::string verification_json(const storage::verification& found);

[[nodiscard]] std::string repair_text(const storage::repair_report& report);
[[nodiscard]] std::string repair_json(const storage::repair_report& report);

/// A session's name without control characters that a terminal would execute.
[[nodiscard]] std::string printable(std::string_view name);

}  // namespace skein::cli
