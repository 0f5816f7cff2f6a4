#include "model/repository/model_files.hpp"

#include <simdjson.h>

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

/// The templates of "chat_template" in tokenizer_config.json: a text, or a list of {name, template}.
std::string templates_in(std::string_view json) {
  simdjson::dom::parser parser(chat_template_bytes_max);
  simdjson::dom::element value;
  std::string_view text;
  if (parser.parse(json).at_key("chat_template").get(value) != simdjson::SUCCESS) return {};
  if (value.get(text) == simdjson::SUCCESS) return std::string(text);
  std::string all;
  simdjson::dom::array list;
  if (value.get(list) == simdjson::SUCCESS)
    for (const auto each : list)
      if (each["template"].get(text) == simdjson::SUCCESS) all += text;
  return all;
}

/// Of the template beside a model, as Hugging Face finds it. A file that cannot be read says nothing.
chat_form chat_form_of(const fs::path& folder) {
  const auto text_of = [&](const char* name) {
    auto text = is_regular(folder / name) ? read_json_text(folder / name, chat_template_bytes_max) : std::string();
    return text ? std::move(*text) : std::string();
  };
  if (const std::string own = text_of("chat_template.jinja"); !own.empty()) return recognise_chat_template(own);
  return recognise_chat_template(templates_in(text_of("tokenizer_config.json")));
}

result<void> read_folder(const fs::path& folder, found_model& found) {
  found.chat = chat_form_of(folder);
  if (found.chat == chat_form::unknown)
    found.notes.emplace_back("left out: the chat template, which is not one of RWKV models");
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
