#pragma once
#include <filesystem>
#include <vector>

namespace skein::cli {

/// Where files that come with the program are looked for, in this order: $SKEIN_DATA_DIR, share/skein beside the folder
/// of the program (installed), share/skein in it (a build folder, an unpacked archive), /usr/share/skein.
[[nodiscard]] std::vector<std::filesystem::path> data_folders();

/// The checkpoint that comes with the program and is served when no other is named. Empty when it is not there.
[[nodiscard]] std::filesystem::path demo_model();

/// Whether `file` is a regular file; false for anything that cannot be looked at.
[[nodiscard]] bool is_file(const std::filesystem::path& file);

}  // namespace skein::cli
