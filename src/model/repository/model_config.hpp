#pragma once
#include <filesystem>
#include <vector>

#include "base/result.hpp"
#include "model/files/found_model.hpp"

namespace skein::model {

/// The sizes that `config.json` of a repository states, for the check against the tensors. Errors: those of
/// read_json_text, bad_file for other JSON, unsupported (named) for hybrid layers, tied embeddings, quantised weights,
/// other norms and research variants.
[[nodiscard]] result<std::vector<stated_size>> read_model_config(const std::filesystem::path& path);

}  // namespace skein::model
