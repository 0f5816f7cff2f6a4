#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "kernels/weights/model_weights.hpp"
#include "model/model_info.hpp"

namespace skein::cli {

/// Version and sizes of a released model.
struct released_model {
  model::rwkv_version version;
  kernels::model_dims dims;
};

/// The released model of that name: "7.2b" or "v7-7.2b" for RWKV-7, "v4-7b", "v5-3b" (RWKV-5.2), "v6-1.6b". All have
/// the World vocabulary of 65,536 tokens, also those of RWKV-4, most of which were released with 50,277. nullopt for
/// other names.
[[nodiscard]] std::optional<released_model> find_released(std::string_view size);

/// The names that find_released accepts, separated by commas; those of RWKV-7 without "v7-".
[[nodiscard]] std::string released_sizes();

/// A model with random weights.
struct random_model {
  model::rwkv_version version = model::rwkv_version::v7;
  kernels::model_dims dims;
  dtype type = dtype::bf16;  ///< of all tensors: bf16 or f16
  std::uint64_t seed = 1;
  bool sparse = false;  ///< 88 % of the squared ReLU's outputs are zero, as in trained models; false: half of them
};

/// Writes a checkpoint for measurements, with the tensors that the version's list names. The output is noise, but all
/// activations stay in a normal range. Deterministic. Uses all cores. Errors: io.
[[nodiscard]] result<void> write_random_model(const std::filesystem::path& path, const random_model& of);

}  // namespace skein::cli
