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

/// Writes an RWKV-7 checkpoint with random weights, bf16 or f16 (checked), for measurements: what it answers is noise,
/// but all activations stay of a sane size. The same arguments give the same file. All cores write. Errors: io.
[[nodiscard]] result<void> write_random_model(const std::filesystem::path& path, const kernels::rwkv7_dims& dims,
                                              dtype type, std::uint64_t seed);

}  // namespace skein::cli
