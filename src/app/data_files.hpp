#pragma once
#include <filesystem>
#include <vector>

namespace skein::cli {

/// Folders that are searched for the files shipped with the program, in this order: $SKEIN_DATA_DIR, share/skein next
/// to the program's folder (installed), share/skein inside it (a build folder, an unpacked archive), /usr/share/skein.
[[nodiscard]] std::vector<std::filesystem::path> data_folders();

/// The checkpoint shipped with the program, served if no other is named. Empty if it is not installed.
[[nodiscard]] std::filesystem::path demo_model();

/// Whether `file` is a regular file; false if that cannot be determined.
[[nodiscard]] bool is_file(const std::filesystem::path& file);

/// Whether `folder` is a folder with the files of a model: `model.safetensors`, or an index of its parts.
[[nodiscard]] bool is_model_folder(const std::filesystem::path& folder);

}  // namespace skein::cli
