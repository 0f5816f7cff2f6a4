#include "model/repository/model_files.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "model/repository/json_file.hpp"
#include "model/repository/model_config.hpp"
#include "model/repository/shard_index.hpp"

namespace skein::model {
namespace {

namespace fs = std::filesystem;

constexpr const char* indices[] = {"model.safetensors.index.json", "pytorch_model.bin.index.json"};
constexpr const char* usual_names[] = {"model.safetensors", "pytorch_model.bin"};
constexpr const char* chat_templates[] = {"chat_template.jinja", "tokenizer_config.json"};
constexpr std::size_t chat_template_bytes_max = 1u << 20;
constexpr std::array<std::string_view, 4> endings{".safetensors", ".pth", ".st", ".gguf"};

bool is_regular(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// The one model file of a folder.
result<fs::path> only_file(const fs::path& folder) {
  for (const char* name : usual_names)
    if (is_regular(folder / name)) return folder / name;
  std::error_code fault;
  std::vector<std::string> found;
  for (auto at = fs::directory_iterator(folder, fault); !fault && at != fs::directory_iterator(); at.increment(fault))
    if (std::ranges::find(endings, at->path().extension().string()) != endings.end() && is_regular(at->path())) {
      if (found.size() == 2) break;  // enough for the error
      found.push_back(at->path().filename().string());
    }
  if (fault) return error{error_kind::io, folder.string() + ": cannot list the folder: " + fault.message(), {}};
  if (found.empty())
    return error{error_kind::missing_file,
                 folder.string() +
                     ": the folder has no model file; accepted: model.safetensors, an index of shards, or " +
                     "one file .safetensors, .pth, .st or .gguf",
                 {}};
  if (found.size() > 1) {
    std::ranges::sort(found);
    return error{error_kind::conflict,
                 folder.string() + ": the folder has several model files (" + found[0] + ", " + found[1] +
                     "); name one of them, or give the folder as --model-root",
                 {}};
  }
  return folder / found.front();
}

/// Reads the files of an index and checks that each has exactly the tensors that it lists.
result<void> read_shards(const fs::path& folder, const fs::path& index_path, found_model& found) {
  const auto index = shard_index::read(index_path);
  if (!index) return index.error();
  const auto fault = [&](const std::string& tensor, const std::string& what) {
    return error{error_kind::bad_file, index_path.string() + ": tensor " + printable(tensor) + " " + what, {}};
  };
  for (const auto& name : index->files()) {
    if (!is_regular(folder / name))
      return error{error_kind::missing_file,
                   index_path.string() + ": weight_map: the file " + printable(name) + " is missing",
                   {}};
    if (const auto added = add_file(found, folder / name); !added) return added.error();
  }
  std::vector<std::string_view> names;
  names.reserve(found.tensors.size());
  for (const auto& tensor : found.tensors) {
    const auto listed = index->file_of(tensor.name);
    const std::string& file = index->files()[tensor.file];
    if (!listed) return fault(tensor.name, "is in " + printable(file) + ", but not in the index");
    if (*listed != tensor.file)
      return fault(tensor.name, "is in " + printable(file) + ", not in " + printable(index->files()[*listed]));
    names.emplace_back(tensor.name);
  }
  std::ranges::sort(names);
  for (const auto& [tensor, file] : index->entries())
    if (!std::ranges::binary_search(names, std::string_view(tensor)))
      return fault(tensor, "is not in " + printable(index->files()[file]));
  return {};
}

/// Templates are not run. A file that cannot be read says nothing.
bool has_headed_tools(const fs::path& folder) {
  return std::ranges::any_of(chat_templates, [&](const char* name) {
    if (!is_regular(folder / name)) return false;
    const auto text = read_json_text(folder / name, chat_template_bytes_max);
    return text && text->find(headed_tool_call) != std::string::npos;
  });
}

result<void> read_folder(const fs::path& folder, found_model& found) {
  found.headed_tools = has_headed_tools(folder);
  const auto* index = std::ranges::find_if(indices, [&](const char* name) { return is_regular(folder / name); });
  if (index != std::end(indices)) {
    if (const auto read = read_shards(folder, folder / *index, found); !read) return read.error();
  } else {
    const auto file = only_file(folder);
    if (!file) return file.error();
    if (const auto added = add_file(found, *file); !added) return added.error();
  }
  if (!is_regular(folder / "config.json")) return {};
  auto stated = read_model_config(folder / "config.json");
  if (!stated) return stated.error();
  found.stated = std::move(*stated);
  return {};
}

}  // namespace

result<found_model> read_files(const fs::path& path) {
  found_model found;
  std::error_code ignored;
  const auto read = fs::is_directory(path, ignored) ? read_folder(path, found) : add_file(found, path);
  if (!read) return read.error();
  return found;
}

}  // namespace skein::model
