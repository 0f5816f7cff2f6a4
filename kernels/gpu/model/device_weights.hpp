#pragma once
#include <vector>

#include "kernels/gpu/gemm/matmul.hpp"
#include "kernels/gpu/ops/embed.hpp"
#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/runtime/stream.hpp"
#include "kernels/rwkv7_weights.hpp"

namespace skein::kernels::gpu {

/// A matrix on the device, laid out as `product` expects.
struct device_matrix {
  const void* data = nullptr;
  std::uint32_t outputs = 0, inputs = 0;
};

/// The weights of one layer under their checkpoint names. Both halves of each low-rank pair are plain matrices; vectors
/// are fp32.
struct device_layer {
  norm_weights ln1, ln2;
  const float *x_r = nullptr, *x_w = nullptr, *x_k = nullptr, *x_v = nullptr, *x_a = nullptr, *x_g = nullptr;
  const float *w0 = nullptr, *a0 = nullptr, *v0 = nullptr, *k_k = nullptr, *k_a = nullptr, *r_k = nullptr;
  const float *ln_x_weight = nullptr, *ln_x_bias = nullptr, *ffn_x_k = nullptr;
  device_matrix w1, a1, v1, g1, w2, a2, v2, g2;
  device_matrix receptance, key, value, output, ffn_key, ffn_value;
};

/// All weights of a model, in one allocation.
struct device_rwkv7 {
  device_buffer<std::byte> memory;
  device_matrix emb, head;
  norm_weights ln0, ln_out;
  std::vector<device_layer> layers;
};

/// The size of device_rwkv7::memory.
[[nodiscard]] std::size_t device_weight_bytes(const rwkv7_weights& weights, element type);

/// Copies a checkpoint to the current device through pinned memory, converts matrices to `type`, and waits for the
/// copies. Throws device_failure; if memory is short, the message gives the size of the allocation.
[[nodiscard]] device_rwkv7 upload(const rwkv7_weights& weights, element type, const load_progress& progress);

}  // namespace skein::kernels::gpu
