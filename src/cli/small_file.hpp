#pragma once
#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace skein::cli {

/// The whole content. Errors: missing_file, forbidden, io.
[[nodiscard]] result<std::string> read_small_file(const std::filesystem::path& path);
/// Replaces the content. Errors: io.
[[nodiscard]] result<void> write_small_file(const std::filesystem::path& path, const std::string& content);

}  // namespace skein::cli
