#pragma once
#include <filesystem>
#include <vector>

#include "base/result.hpp"
#include "model/model_info.hpp"
#include "model/state_value.hpp"

namespace skein::cli {

/// Reads a state as fp32 in canonical order from a file that write_state wrote, or the initial state of a state-tuning
/// file. Errors: those of checkpoint::open, bad_file for arrays that are missing, surplus or do not fit the model (both
/// named).
[[nodiscard]] result<std::vector<float>> read_state(const std::filesystem::path& path, const model::model_info& info,
                                                    bool allow_nonfinite = false);

/// Writes a state as .safetensors: its arrays with their canonical names, each in its own type. Errors: io.
[[nodiscard]] result<void> write_state(const std::filesystem::path& path, const model::state_view& state);

}  // namespace skein::cli
