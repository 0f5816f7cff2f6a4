#pragma once
#include "kernels/weights/tensor_spec.hpp"

namespace skein::kernels {

/// One layer of RWKV-7 ("Goose", arXiv 2503.14456).
template <typename Types>
struct rwkv7_layer_of {
  using vector = typename Types::vector;
  using matrix = typename Types::matrix;

  vector ln1_weight, ln1_bias, ln2_weight, ln2_bias;  // (C)
  vector x_r, x_w, x_k, x_v, x_a, x_g;                // (C)
  vector w0;                                          // (C)
  matrix w1, w2;                                      // (C, rank_w) (rank_w, C)
  vector a0;                                          // (C)
  matrix a1, a2;                                      // (C, rank_a) (rank_a, C)
  vector v0;                                          // (C), not in layer 0
  matrix v1, v2;                                      // (C, rank_v) (rank_v, C), not in layer 0
  matrix g1, g2;                                      // (C, rank_g) (rank_g, C)
  vector k_k, k_a;                                    // (C)
  vector r_k;                                         // (H, N)
  matrix receptance, key, value, output;              // (C, C)
  vector ln_x_weight, ln_x_bias;                      // (C)
  vector ffn_x_k;                                     // (C)
  matrix ffn_key, ffn_value;                          // (F, C) (C, F)
  vector time_state;                                  // (H, N, N), absent: zeros

  /// visit(spec, tensor of each argument...) for each tensor.
  template <typename Visit, typename... Layers>
  static void for_each_tensor(const Visit& visit, Layers&... of) {
    using enum extent;
    using enum presence;
    const auto low_rank = [&](std::string_view name, extent in, extent out, auto&... tensor) {
      visit(tensor_spec{name, {in, out}, always, true}, tensor...);
    };
    const auto low_rank_after_first = [&](std::string_view name, extent in, extent out, auto&... tensor) {
      visit(tensor_spec{name, {in, out}, after_first, true}, tensor...);
    };
    visit(tensor_spec{"ln1.weight", {C}}, of.ln1_weight...);
    visit(tensor_spec{"ln1.bias", {C}}, of.ln1_bias...);
    visit(tensor_spec{"ln2.weight", {C}}, of.ln2_weight...);
    visit(tensor_spec{"ln2.bias", {C}}, of.ln2_bias...);
    visit(tensor_spec{"att.x_r", {C}}, of.x_r...);
    visit(tensor_spec{"att.x_w", {C}}, of.x_w...);
    visit(tensor_spec{"att.x_k", {C}}, of.x_k...);
    visit(tensor_spec{"att.x_v", {C}}, of.x_v...);
    visit(tensor_spec{"att.x_a", {C}}, of.x_a...);
    visit(tensor_spec{"att.x_g", {C}}, of.x_g...);
    visit(tensor_spec{"att.w0", {C}}, of.w0...);
    low_rank("att.w1", C, rank_w, of.w1...);
    low_rank("att.w2", rank_w, C, of.w2...);
    visit(tensor_spec{"att.a0", {C}}, of.a0...);
    low_rank("att.a1", C, rank_a, of.a1...);
    low_rank("att.a2", rank_a, C, of.a2...);
    visit(tensor_spec{"att.v0", {C}, after_first}, of.v0...);
    low_rank_after_first("att.v1", C, rank_v, of.v1...);
    low_rank_after_first("att.v2", rank_v, C, of.v2...);
    low_rank("att.g1", C, rank_g, of.g1...);
    low_rank("att.g2", rank_g, C, of.g2...);
    visit(tensor_spec{"att.k_k", {C}}, of.k_k...);
    visit(tensor_spec{"att.k_a", {C}}, of.k_a...);
    visit(tensor_spec{"att.r_k", {H, N}}, of.r_k...);
    visit(tensor_spec{"att.receptance.weight", {C, C}}, of.receptance...);
    visit(tensor_spec{"att.key.weight", {C, C}}, of.key...);
    visit(tensor_spec{"att.value.weight", {C, C}}, of.value...);
    visit(tensor_spec{"att.output.weight", {C, C}}, of.output...);
    visit(tensor_spec{"att.ln_x.weight", {C}}, of.ln_x_weight...);
    visit(tensor_spec{"att.ln_x.bias", {C}}, of.ln_x_bias...);
    visit(tensor_spec{"ffn.x_k", {C}}, of.ffn_x_k...);
    visit(tensor_spec{"ffn.key.weight", {F, C}}, of.ffn_key...);
    visit(tensor_spec{"ffn.value.weight", {C, F}}, of.ffn_value...);
    visit(tensor_spec{"att.time_state", {H, N, N}, optional}, of.time_state...);
  }
};

}  // namespace skein::kernels
