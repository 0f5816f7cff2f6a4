#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "base/tensor.hpp"
#include "kernels/stages.hpp"

namespace skein::kernels {

/// Sizes of an RWKV-7 model, all taken from tensor shapes (model/model_info), never from a file name.
struct rwkv7_dims {
  std::uint32_t layers = 0, embd = 0 /*C*/, heads = 0 /*H*/, head_size = 0 /*N*/, ffn = 0 /*F*/, vocab = 0 /*V*/;
  std::uint32_t rank_w = 0, rank_a = 0, rank_v = 0, rank_g = 0;  ///< inner sizes of the low-rank pairs
};

/// Weights of one layer under their checkpoint names. Linear matrices are (out, in); the low-rank ones (in, out).
/// Views into the checkpoint; shapes are checked by model/weights, strides may be anything.
struct rwkv7_layer {
  tensor_view ln1_weight, ln1_bias, ln2_weight, ln2_bias;  // (C)
  tensor_view x_r, x_w, x_k, x_v, x_a, x_g;                // (C)
  tensor_view w0, w1, w2;                                  // (C) (C, rank_w) (rank_w, C)
  tensor_view a0, a1, a2;                                  // (C) (C, rank_a) (rank_a, C)
  tensor_view v0, v1, v2;                                  // as a; unused (data null) in layer 0
  tensor_view g1, g2;                                      // (C, rank_g) (rank_g, C)
  tensor_view k_k, k_a;                                    // (C)
  tensor_view r_k;                                         // (H, N)
  tensor_view receptance, key, value, output;              // (C, C)
  tensor_view ln_x_weight, ln_x_bias;                      // (C)
  tensor_view ffn_x_k;                                     // (C)
  tensor_view ffn_key;                                     // (F, C)
  tensor_view ffn_value;                                   // (C, F)
  tensor_view time_state;                                  // (H, N, N) or data null: zeros
};

struct rwkv7_weights {
  rwkv7_dims dims;
  tensor_view emb;                   // (V, C)
  tensor_view ln0_weight, ln0_bias;  // (C)
  std::vector<rwkv7_layer> layers;
  tensor_view ln_out_weight, ln_out_bias;  // (C)
  tensor_view head;                        // (V, C)
};

/// All tensors that are present.
[[nodiscard]] std::vector<const tensor_view*> all_views(const rwkv7_weights& weights);

/// bad_file unless every tensor has a floating element type. Both makers below call it.
[[nodiscard]] result<void> check_element_types(const rwkv7_weights& weights);

/// Tells a start-up observer how far the weights are: bytes done of all.
struct load_progress {
  void (*report)(void* context, std::uint64_t done, std::uint64_t total) = nullptr;
  void* context = nullptr;
};

/// Errors of both makers: bad_file (element types), unsupported (a matrix type or head size that no kernel handles),
/// unavailable (no memory for weights, activations or states).
///
/// The judge: fp32 scalar loops over the checkpoint's exact values, one thread.
[[nodiscard]] result<std::unique_ptr<stages>> make_reference_rwkv7(const rwkv7_weights& weights,
                                                                   const stage_limits& limits);

/// Highway on all cores. Matrices are kept in `matrix_type` (f32, bf16 or f16), vectors, activations, sums and states
/// in fp32. The views may be dropped when this returns.
[[nodiscard]] result<std::unique_ptr<stages>> make_cpu_rwkv7(const rwkv7_weights& weights, dtype matrix_type,
                                                             const stage_limits& limits,
                                                             const load_progress& progress = {});
/// The memory that make_cpu_rwkv7 will take, found without taking any. Errors: bad_file and unsupported, as there.
[[nodiscard]] result<memory_plan> plan_cpu_rwkv7(const rwkv7_weights& weights, dtype matrix_type,
                                                 const stage_limits& limits);

}  // namespace skein::kernels
