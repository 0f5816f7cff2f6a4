#pragma once
#include <cstddef>
#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace skein::model {

/// The text of a small file. Errors: those of mapped_file::open, bad_file if it is longer.
[[nodiscard]] result<std::string> read_json_text(const std::filesystem::path& path, std::size_t bytes_max);

/// bad_file: "<path>: <what>".
[[nodiscard]] error json_fault(const std::filesystem::path& path, const std::string& what);

}  // namespace skein::model
