#include "app/data_files.hpp"

#include <cstdlib>
#include <system_error>

namespace skein::cli {
namespace {

constexpr const char* demo_file = "demo/skein-demo.safetensors";

}  // namespace

std::vector<std::filesystem::path> data_folders() {
  std::vector<std::filesystem::path> folders;
  if (const char* given = std::getenv("SKEIN_DATA_DIR")) folders.emplace_back(given);
  std::error_code unknown;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (!unknown) {
    folders.push_back(program.parent_path().parent_path() / "share/skein");
    folders.push_back(program.parent_path() / "share/skein");
  }
  folders.emplace_back("/usr/share/skein");
  return folders;
}

std::filesystem::path demo_model() {
  for (const auto& folder : data_folders())
    if (is_file(folder / demo_file)) return folder / demo_file;
  return {};
}

bool is_file(const std::filesystem::path& file) {
  std::error_code none;
  return std::filesystem::is_regular_file(file, none);
}

bool is_model_folder(const std::filesystem::path& folder) {
  if (folder.empty()) return false;
  for (const char* name :
       {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"})
    if (is_file(folder / name)) return true;
  return false;
}

}  // namespace skein::cli
