#pragma once
#include <cstddef>
#include <vector>

#include "kernels/cpu/aligned_buffer.hpp"
#include "kernels/cpu/embedding.hpp"
#include "kernels/cpu/packed_matrix.hpp"
#include "kernels/rwkv7_weights.hpp"

namespace skein::kernels::cpu {

using vector = aligned_buffer<float>;

struct norm {
  vector weight, bias;
};

struct low_rank {
  packed_matrix first, second;
};

struct layer {
  norm ln1, ln2, ln_x;
  vector x_r, x_w, x_k, x_v, x_a, x_g, w0, a0, v0, k_k, k_a, r_k, ffn_x_k;
  packed_matrix receptance, key, value, output, ffn_key, ffn_value;
  low_rank w, a, v, g;
  vector time_state;  ///< canonical; empty: zeros
};

/// The weights of a model in the CPU's format: packed matrices, vectors in fp32.
struct packed_rwkv7 {
  embedding emb;
  norm ln0, ln_out;
  std::vector<layer> layers;
  packed_matrix head;
  std::size_t bytes = 0;  ///< allocated for all weights
};

/// packed_rwkv7::bytes before anything is packed.
[[nodiscard]] std::size_t packed_bytes(const rwkv7_weights& weights, matrix_format format);

/// Copies the weights with all threads of the pool, reporting after each tensor. Throws std::bad_alloc.
[[nodiscard]] packed_rwkv7 pack(const rwkv7_weights& weights, matrix_format format, const load_progress& progress,
                                thread_pool& pool);

}  // namespace skein::kernels::cpu
