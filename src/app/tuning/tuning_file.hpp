#pragma once
#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "kernels/gpu/types/gpu_tuning.hpp"
#include "model/checkpoint.hpp"

namespace skein::cli {

/// What `skein tune` measured is beside the model: MODEL.tuning.json, or skein-tuning.json in the folder of a
/// repository. It has an entry for each GPU and format of the weights.
[[nodiscard]] std::filesystem::path tuning_file_of(const model::checkpoint& file);

struct tuning_key {
  std::string device;   ///< the vendor's name for the GPU
  std::string weights;  ///< the format of the weights, as "bf16" or "int4"
  bool operator==(const tuning_key&) const = default;
};

/// The entry of that key; without a file or an entry, a tuning without members.
/// Errors: bad_file if the file is damaged or a value is out of range, those of read_small_file.
[[nodiscard]] result<kernels::gpu::gpu_tuning> read_tuning(const std::filesystem::path& path, const tuning_key& key);
/// Replaces the entry of that key. The file is replaced as a whole; a damaged one is an error. Errors: as above, io.
[[nodiscard]] result<void> write_tuning(const std::filesystem::path& path, const tuning_key& key,
                                        const kernels::gpu::gpu_tuning& tuning);

}  // namespace skein::cli
