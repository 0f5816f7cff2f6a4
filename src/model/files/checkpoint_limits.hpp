#pragma once
#include <cstddef>
#include <cstdint>

/// Limits on the content of a checkpoint. The largest released model (13.3b, 61 layers) has about 2,000 tensors, 200 KB
/// of safetensors header and 250 KB of pickle. The limits leave a factor of eight or more and keep the memory that a
/// hostile file can make a reader allocate below 64 MiB.
namespace skein::model {

inline constexpr std::size_t max_tensors = 16384;
inline constexpr std::size_t max_tensor_name_bytes = 512;
inline constexpr std::size_t max_dimensions = 8;
inline constexpr std::uint64_t max_header_bytes = 4u << 20;        ///< JSON of a safetensors file, data.pkl of a .pth
inline constexpr std::uint64_t max_gguf_header_bytes = 64u << 20;  ///< keys, values and descriptions of tensors
inline constexpr std::uint64_t max_gguf_pairs = 4096;              ///< llama.cpp writes about 40
inline constexpr std::size_t max_gguf_tokens = 1u << 20;
inline constexpr std::size_t max_zip_members = 2 * max_tensors;
inline constexpr std::uint64_t max_zip_directory_bytes = 16u << 20;

}  // namespace skein::model
