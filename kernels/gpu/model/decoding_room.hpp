#pragma once
#include <cstdint>
#include <span>

#include "kernels/gpu/gemm/matmul.hpp"
#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/types/gpu_options.hpp"
#include "kernels/weights/model_weights.hpp"

namespace skein::kernels::gpu {

/// Space for the quantised matrices of a launch as rows of 16 bits. Launches of many rows use it in turn: there, to
/// decode a matrix once costs less than to decode it in the products of each tile.
class decoding_room {
 public:
  /// None if no tick of the model has many rows, or if nothing is decoded. Throws device_failure.
  decoding_room(const model_dims& dims, const gpu_options& options, std::uint32_t rows);

  /// Gives the products of a launch their `decoded`, if it has many rows and there is space for all of them.
  void assign(std::span<gemm> gemms, std::uint32_t rows) const;
  [[nodiscard]] std::size_t bytes() const { return memory_.bytes(); }
  [[nodiscard]] static std::size_t planned_bytes(const model_dims& dims, const gpu_options& options,
                                                 std::uint32_t rows);

 private:
  device_buffer<std::byte> memory_;
};

}  // namespace skein::kernels::gpu
