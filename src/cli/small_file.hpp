#pragma once
#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace skein::cli {

/// The whole content. Errors: missing_file, forbidden, io.
[[nodiscard]] result<std::string> read_small_file(const std::filesystem::path& path);

}  // namespace skein::cli
