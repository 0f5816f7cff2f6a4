#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "kernels/weights/model_weights.hpp"

namespace skein::cli {

/// The dimensions of a released RWKV-7 model: "0.1b", "0.4b", "1.5b", "2.9b", "7.2b". nullopt for other names.
[[nodiscard]] std::optional<kernels::model_dims> released_dims(std::string_view size);

/// An RWKV-7 model with random weights.
struct random_model {
  kernels::model_dims dims;
  dtype type = dtype::bf16;  ///< of all tensors: bf16 or f16
  std::uint64_t seed = 1;
  bool sparse = false;  ///< 88 % of the squared ReLU's outputs are zero, as in trained models; false: half of them
};

/// Writes a checkpoint for measurements. The output is noise, but all activations stay in a normal range.
/// Deterministic. Uses all cores. Errors: io.
[[nodiscard]] result<void> write_random_model(const std::filesystem::path& path, const random_model& of);

}  // namespace skein::cli
