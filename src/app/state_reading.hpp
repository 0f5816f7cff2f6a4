#pragma once
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "app/state_command.hpp"
#include "base/result.hpp"
#include "storage/database/database.hpp"

/// The read-only part of `skein state`. A running server runs it too, on a copy of its directory.
namespace skein::cli {

/// The name on the command line.
[[nodiscard]] std::string_view name_of(state_action action);

/// Errors: those of database::open; conflict while a server has it open.
[[nodiscard]] result<std::shared_ptr<storage::database>> open_state(const state_command& what, bool read_only);

/// Adds the repair command to an error of opening a database, if files of it are damaged or missing.
[[nodiscard]] error with_repair_named(error why, const std::filesystem::path& state_dir);

/// Where a running server puts the copy of its state directory for reading.
[[nodiscard]] inline std::filesystem::path looked_at(const std::filesystem::path& state_dir) {
  return state_dir / "looked-at";
}

/// Runs list, info, export or verify on a directory that no process changes meanwhile. `output` is the text to print,
/// set even if verify fails (damaged); for export it is the file, signed if there is a key.
[[nodiscard]] result<void> read_state(const state_command& what, const std::string& signature_key, std::string& output,
                                      const std::stop_token& stop = {});

/// Copies the database into a new state directory. Errors: conflict (the directory exists), io, no_space.
[[nodiscard]] result<void> back_up(storage::database& db, const std::filesystem::path& into);

}  // namespace skein::cli
