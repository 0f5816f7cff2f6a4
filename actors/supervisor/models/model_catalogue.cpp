#include "actors/supervisor/models/model_catalogue.hpp"

#include <algorithm>
#include <array>
#include <system_error>

#include "app/data_files.hpp"

namespace skein::supervisor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t ids_max = 1000;
constexpr std::array endings{".pth", ".safetensors", ".gguf", ".st"};

bool is_model(const fs::path& path) {
  return (std::ranges::find(endings, path.extension().string()) != endings.end() && cli::is_file(path)) ||
         cli::is_model_folder(path);
}

/// The name of a folder, or of a file without its extension.
std::string name_of(const fs::path& path) {
  return cli::is_model_folder(path) ? path.filename().string() : path.stem().string();
}

bool is_below(const fs::path& file, const fs::path& folder) {
  return !folder.empty() && std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
}

fs::path real_path(const fs::path& path) {
  std::error_code ec;
  const fs::path real = fs::weakly_canonical(path, ec);
  return ec ? fs::path() : real;
}

/// The file or folder itself, or with an extension of models; empty if there is neither.
fs::path with_ending(const fs::path& path) {
  if (cli::is_file(path) || cli::is_model_folder(path)) return path;
  for (const auto& ending : endings)
    if (fs::path full = path.string() + ending; cli::is_file(full)) return full;
  return {};
}

}  // namespace

model_catalogue::model_catalogue(const config::config& settings) {
  if (!settings.model.root.empty()) root_ = real_path(settings.model.root);
  own_.is_own = true;
  if (settings.engine.device.starts_with("fake")) {  // which has no file; legal only in builds with SKEIN_FAKE_ENGINE
    own_.id = "fake";
  } else {
    own_.path = with_ending(settings.model.path.empty() ? cli::demo_model() : fs::path(settings.model.path));
    own_.path = real_path(own_.path);
    own_.id = name_of(own_.path);
  }
  if (!settings.model.name.empty()) own_.id = settings.model.name;
}

std::vector<std::string> model_catalogue::ids() const {
  std::vector<std::string> all{own_.id};
  std::error_code ec;
  if (!root_.empty())
    for (auto at = fs::directory_iterator(root_, ec); !ec && at != fs::directory_iterator() && all.size() < ids_max;
         at.increment(ec))
      if (const fs::path file = real_path(at->path()); is_model(file) && is_below(file, root_) && file != own_.path)
        all.push_back(name_of(at->path()));
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

result<model_catalogue::choice> model_catalogue::by_id(const std::string& id) const {
  auto chosen = by_path(id);
  if (!chosen && chosen.error().kind != error_kind::missing_file)
    return error{chosen.error().kind, chosen.error().message, "model"};
  const auto all = ids();
  if (!chosen || std::ranges::find(all, id) == all.end())
    return error{error_kind::missing_file, "unknown model: " + id, "model"};
  return chosen;
}

result<model_catalogue::choice> model_catalogue::by_path(const std::string& name) const {
  if (name == own_.id) return own_;
  bool is_ours = false;
  if (name.find('\0') == std::string::npos)
    for (const fs::path& asked : {fs::path(name), root_.empty() ? fs::path() : root_ / name}) {
      const fs::path found = with_ending(asked);
      const fs::path file = real_path(found.empty() ? asked : found);
      if (!own_.path.empty() && file == own_.path) return own_;
      if (!is_below(file, root_)) continue;
      if (!found.empty() && file != root_) return choice{file, name_of(file), false};
      is_ours = true;
    }
  if (is_ours)
    return error{error_kind::missing_file, "no such model file in model.root: '" + name + "'", "model_filename"};
  return error{error_kind::forbidden,
               root_.empty() ? "other models cannot be loaded: model.root is not set"
                             : "the model file must be in the folder model.root",
               "model_filename"};
}

result<fs::path> model_catalogue::adapter(const std::string& name) const {
  bool is_ours = false;
  if (!root_.empty() && name.find('\0') == std::string::npos)
    for (const fs::path& asked : {fs::path(name), root_ / name}) {
      fs::path file = real_path(asked);
      if (!is_below(file, root_)) continue;
      std::error_code none;
      if (fs::exists(file, none)) return file;
      is_ours = true;
    }
  if (is_ours) return error{error_kind::missing_file, "no such adapter: '" + name + "'", "adapter_filename"};
  return error{error_kind::forbidden,
               root_.empty() ? "adapters cannot be loaded: model.root is not set"
                             : "the adapter must be in the folder model.root",
               "adapter_filename"};
}

}  // namespace skein::supervisor
