#pragma once
#include <filesystem>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "model/model_info.hpp"

namespace skein::cli {

/// Reads a state in canonical order from a file that write_state wrote, or the initial state of a state-tuning file.
/// Errors: those of checkpoint::open, bad_file for arrays that are missing or do not fit the model (both named).
[[nodiscard]] result<std::vector<float>> read_state(const std::filesystem::path& path, const model::model_info& info,
                                                    bool allow_nonfinite = false);

/// Writes a state as .safetensors of F32 arrays with their canonical names. Errors: io.
[[nodiscard]] result<void> write_state(const std::filesystem::path& path, const model::state_layout& layout,
                                       std::span<const float> state);

}  // namespace skein::cli
