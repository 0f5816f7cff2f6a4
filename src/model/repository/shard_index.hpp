#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace skein::model {

/// `model.safetensors.index.json`: the file of each tensor of a model that is divided over several files.
class shard_index {
 public:
  /// Errors: those of read_json_text, bad_file (not JSON, no `weight_map`, too many entries, a name twice, a file name
  /// that leaves the folder).
  [[nodiscard]] static result<shard_index> read(const std::filesystem::path& path);

  /// Names of files in the folder, in order and each once.
  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }
  [[nodiscard]] std::size_t tensors() const { return file_of_.size(); }
  /// The index of the tensor's file; nullopt if the tensor is not listed.
  [[nodiscard]] std::optional<std::uint32_t> file_of(std::string_view tensor) const;
  /// In order of name: tensor and index of its file.
  [[nodiscard]] const std::vector<std::pair<std::string, std::uint32_t>>& entries() const { return file_of_; }

 private:
  std::vector<std::string> files_;
  std::vector<std::pair<std::string, std::uint32_t>> file_of_;
};

}  // namespace skein::model
