#pragma once
#include <filesystem>
#include <string>

#include "app/state_command.hpp"
#include "base/result.hpp"

namespace skein::cli {

/// The default path of a server's socket for `skein state`.
[[nodiscard]] std::filesystem::path admin_socket(const std::filesystem::path& state_dir);

/// Sends the action to the server that has the state directory open, through its admin socket. `body`: the signature
/// key, if any (export), or the file (import). `output`: the text to print, or the file (export). Errors: the server's;
/// conflict if it does not answer.
[[nodiscard]] result<void> ask_server(const state_command& what, const std::string& body, std::string& output);

}  // namespace skein::cli
