#pragma once
#include <span>
#include <vector>

#include "kernels/gpu/gemm/matmul.hpp"
#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/types/elements.hpp"

namespace skein::kernels::gpu {

/// Activations [rows, stride]. Rows are padded with zeros to whole tiles and no kernel writes to the padding, so a GEMM
/// may read whole rows.
struct activation {
  void* data = nullptr;
  std::uint32_t stride = 0;
};

/// Makes the activations of a model and owns their memory, or only counts it.
class activation_room {
 public:
  /// `type` is the usual element type. `only_counts`: activations get no memory.
  activation_room(std::size_t rows, element type, bool only_counts)
      : rows_(rows), type_(type), only_counts_(only_counts) {}

  [[nodiscard]] activation make(std::uint32_t width) { return make(width, type_); }
  [[nodiscard]] activation make(std::uint32_t width, element type) {
    const std::uint32_t stride = padded(width);
    const std::size_t bytes = rows_ * stride * element_bytes(type);
    bytes_ += bytes;
    if (only_counts_) return {nullptr, stride};
    return {memory_.emplace_back(bytes, "activations").data(), stride};
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// Of each activation.
  [[nodiscard]] std::span<const device_buffer<std::byte>> memory() const { return memory_; }

 private:
  const std::size_t rows_;
  const element type_;
  const bool only_counts_;
  std::size_t bytes_ = 0;
  std::vector<device_buffer<std::byte>> memory_;
};

}  // namespace skein::kernels::gpu
