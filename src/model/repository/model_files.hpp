#pragma once
#include <filesystem>

#include "base/result.hpp"
#include "model/files/found_model.hpp"

namespace skein::model {

/// Reads one file, or the files of a folder: those that an index of shards lists, or its one model file. A folder's
/// `config.json` is read with them. Errors: those of add_file, shard_index::read and read_model_config; missing_file or
/// conflict for a folder without a model or with several; bad_file for an index that contradicts its files.
[[nodiscard]] result<found_model> read_files(const std::filesystem::path& path);

}  // namespace skein::model
