#pragma once
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "cli/commands.hpp"
#include "storage/database.hpp"

/// The part of `skein state` that changes nothing. A running server does it too, on a copy of its directory.
namespace skein::cli {

/// As on the command line.
[[nodiscard]] std::string_view name_of(state_action action);

/// Errors: those of database::open; conflict while a server runs there.
[[nodiscard]] result<std::shared_ptr<storage::database>> open_state(const state_command& what, bool read_only);

/// The error of opening a database, with the command that recovers what can be read where files of it are damaged or
/// missing.
[[nodiscard]] error with_repair_named(error why, const std::filesystem::path& state_dir);

/// Where a running server puts the copy of its state directory that it looks at.
[[nodiscard]] inline std::filesystem::path looked_at(const std::filesystem::path& state_dir) {
  return state_dir / "looked-at";
}

/// list, info, export and verify of a directory that nobody changes meanwhile. `output` is what is printed, also beside
/// an error of verify (damaged); that of export is the file, signed where there is a key.
[[nodiscard]] result<void> read_state(const state_command& what, const std::string& signature_key, std::string& output,
                                      const std::stop_token& stop = {});

/// A copy in a directory that does not exist yet, as a server's state directory. Errors: conflict, io, no_space.
[[nodiscard]] result<void> back_up(storage::database& db, const std::filesystem::path& into);

}  // namespace skein::cli
