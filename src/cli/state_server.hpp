#pragma once
#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "cli/commands.hpp"

namespace skein::cli {

/// Where a server listens for `skein state` unless it is told otherwise.
[[nodiscard]] std::filesystem::path admin_socket(const std::filesystem::path& state_dir);

/// Asks the server that has the state directory to do it, through its admin socket. `body`: export: the key of the
/// signature, if any; import: the file. `output` is what is printed; that of export is the file. Errors: the server's
/// own; conflict where it does not answer.
[[nodiscard]] result<void> ask_server(const state_command& what, const std::string& body, std::string& output);

}  // namespace skein::cli
