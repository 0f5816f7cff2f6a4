#pragma once
#include <vector>

#include "kernels/gpu/gemm/matmul.hpp"
#include "kernels/gpu/ops/embed.hpp"
#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/runtime/stream.hpp"
#include "kernels/weights/model_weights.hpp"

namespace skein::kernels::gpu {

/// A matrix on the device, laid out as `product` expects.
struct device_matrix {
  const void* data = nullptr;
  std::uint32_t outputs = 0, inputs = 0;
};

/// A vector on the device: fp32.
struct device_vector {
  const float* data = nullptr;
  operator const float*() const { return data; }  // NOLINT(google-explicit-constructor): kernels take the pointer
};

/// Weights on the device. Both factors of each low-rank pair are plain matrices.
struct device_types {
  using vector = device_vector;
  using table = device_matrix;
  using matrix = device_matrix;
};
using device_layer = rwkv7_layer_of<device_types>;

/// All weights of a model, in one allocation. An initial state is no weight: its pointers stay null.
struct device_rwkv7 : outer_weights_of<device_types> {
  device_buffer<std::byte> memory;
  std::vector<device_layer> layers;
};

[[nodiscard]] inline norm_weights norm_of(const device_vector& weight, const device_vector& bias) {
  return {weight, bias};
}

/// The size of device_rwkv7::memory.
[[nodiscard]] std::size_t device_weight_bytes(const rwkv7_weights& weights, element type);

/// Copies a checkpoint to the current device through pinned memory, converts matrices to `type`, and waits for the
/// copies. Throws device_failure; if memory is short, the message gives the size of the allocation.
[[nodiscard]] device_rwkv7 upload(const rwkv7_weights& weights, element type, const load_progress& progress);

}  // namespace skein::kernels::gpu
