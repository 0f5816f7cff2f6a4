#include "model/repository/shard_index.hpp"

#include <simdjson.h>

#include <algorithm>

#include "model/files/checkpoint_limits.hpp"
#include "model/files/file_bytes.hpp"
#include "model/repository/json_file.hpp"

namespace skein::model {
namespace {

constexpr std::size_t index_bytes_max = 2u << 20;  // the largest released model needs 200 KB
constexpr std::size_t files_max = 256, file_name_bytes_max = 255;

/// A plain name: it cannot leave the folder.
bool is_file_name(std::string_view name) {
  return !name.empty() && name.size() <= file_name_bytes_max && !name.starts_with('.') &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

}  // namespace

result<shard_index> shard_index::read(const std::filesystem::path& path) {
  const auto text = read_json_text(path, index_bytes_max);
  if (!text) return text.error();
  simdjson::dom::parser parser(index_bytes_max);
  simdjson::dom::element document;
  if (const auto fault = parser.parse(*text).get(document); fault)
    return json_fault(path, std::string("is not valid JSON: ") + simdjson::error_message(fault));
  simdjson::dom::object map;
  if (document["weight_map"].get(map) != simdjson::SUCCESS) return json_fault(path, "has no object \"weight_map\"");

  shard_index index;
  std::vector<std::pair<std::string_view, std::string_view>> entries;  // views into the parser's memory
  for (const auto [tensor, value] : map) {
    std::string_view file;
    if (entries.size() == max_tensors)
      return json_fault(path, "lists more than " + std::to_string(max_tensors) + " tensors");
    if (tensor.empty() || tensor.size() > max_tensor_name_bytes)
      return json_fault(path, "a tensor name is empty or too long");
    if (value.get(file) != simdjson::SUCCESS || !is_file_name(file))
      return json_fault(path, "weight_map: the file of tensor " + printable(tensor) +
                                  (value.is_string() ? " is " + printable(file) : std::string(" is not a text")) +
                                  "; accepted: the name of a file in the folder");
    entries.emplace_back(tensor, file);
    if (std::ranges::find(index.files_, file) != index.files_.end()) continue;
    if (index.files_.size() == files_max)
      return json_fault(path, "lists more than " + std::to_string(files_max) + " files");
    index.files_.emplace_back(file);
  }
  if (entries.empty()) return json_fault(path, "lists no tensors");
  std::ranges::sort(index.files_);
  std::ranges::sort(entries);
  for (const auto& [tensor, file] : entries) {
    if (!index.file_of_.empty() && index.file_of_.back().first == tensor)
      return json_fault(path, "tensor " + printable(tensor) + " appears twice");
    const auto at = std::ranges::lower_bound(index.files_, file) - index.files_.begin();
    index.file_of_.emplace_back(tensor, static_cast<std::uint32_t>(at));
  }
  return index;
}

std::optional<std::uint32_t> shard_index::file_of(std::string_view tensor) const {
  const auto name = [](const auto& entry) -> std::string_view { return entry.first; };
  const auto at = std::ranges::lower_bound(file_of_, tensor, {}, name);
  if (at == file_of_.end() || at->first != tensor) return std::nullopt;
  return at->second;
}

}  // namespace skein::model
