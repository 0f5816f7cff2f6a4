#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "kernels/rwkv7_weights.hpp"

namespace skein::cli {

/// The sizes of a released RWKV-7 model: "0.1b", "0.4b", "1.5b", "2.9b", "7.2b". Nothing for other names.
[[nodiscard]] std::optional<kernels::rwkv7_dims> released_dims(std::string_view size);

/// An RWKV-7 model whose weights are random.
struct random_model {
  kernels::rwkv7_dims dims;
  dtype type = dtype::bf16;  ///< of all tensors: bf16 or f16
  std::uint64_t seed = 1;
  bool sparse = false;  ///< 88 % of what relu squared gives is zero, as in trained models; else half of it
};

/// Writes its checkpoint, for measurements: what it answers is noise, but all activations stay of a sane size. The same
/// model gives the same file. All cores write. Errors: io.
[[nodiscard]] result<void> write_random_model(const std::filesystem::path& path, const random_model& of);

}  // namespace skein::cli
