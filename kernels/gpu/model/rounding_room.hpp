#pragma once
#include <cstdint>
#include <span>

#include "kernels/gpu/gemm/matmul.hpp"
#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/types/gpu_options.hpp"
#include "kernels/weights/model_weights.hpp"

namespace skein::kernels::gpu {

/// Space for the inputs of a launch that are rounded to e4m3. Launches use it in turn.
class rounding_room {
 public:
  /// None if no matrix of the model rounds its inputs. Throws device_failure.
  rounding_room(const model_dims& dims, const gpu_options& options, std::uint32_t rows);

  /// Gives each product that rounds its inputs its `rounded`, the same to those with the same input.
  void assign(std::span<gemm> gemms) const;
  [[nodiscard]] std::size_t bytes() const { return codes_.bytes() + scales_.bytes(); }
  [[nodiscard]] static std::size_t planned_bytes(const model_dims& dims, const gpu_options& options,
                                                 std::uint32_t rows);

 private:
  std::uint32_t rows_ = 0;
  device_buffer<std::byte> codes_;
  device_buffer<float> scales_;
};

}  // namespace skein::kernels::gpu
