#pragma once
#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace skein::cli {

/// The whole contents. Errors: missing_file, forbidden, io.
[[nodiscard]] result<std::string> read_small_file(const std::filesystem::path& path);
/// Checks that a file of secrets is protected from other users of this machine. A world-writable file is an error
/// (bad_config), a world-readable one is logged as a warning. A missing file is not an error here.
[[nodiscard]] result<void> judge_secret_file(const std::filesystem::path& path);
/// Replaces the contents. Errors: io.
[[nodiscard]] result<void> write_small_file(const std::filesystem::path& path, const std::string& content);

}  // namespace skein::cli
