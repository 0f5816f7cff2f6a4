#pragma once
#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace skein::cli {

/// The whole content. Errors: missing_file, forbidden, io.
[[nodiscard]] result<std::string> read_small_file(const std::filesystem::path& path);
/// Whether a file of secrets is safe from other users of this machine. One that everybody may write is an error
/// (bad_config); one that everybody may read is said in the log. A missing file is another's matter.
[[nodiscard]] result<void> judge_secret_file(const std::filesystem::path& path);
/// Replaces the content. Errors: io.
[[nodiscard]] result<void> write_small_file(const std::filesystem::path& path, const std::string& content);

}  // namespace skein::cli
