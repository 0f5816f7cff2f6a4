#pragma once
#include "kernels/weights/tensor_spec.hpp"

namespace skein::kernels {

/// One layer of RWKV-6 ("Finch", arXiv 2404.05892).
template <typename Types>
struct rwkv6_layer_of {
  using vector = typename Types::vector;
  using matrix = typename Types::matrix;
  using stack = typename Types::stack;

  vector ln1_weight, ln1_bias, ln2_weight, ln2_bias;  // (C)
  vector maa_x, maa_w, maa_k, maa_v, maa_r, maa_g;    // (C) shares of the previous token
  matrix maa_w1;                                      // (C, 5 rank_x)
  stack maa_w2;                                       // (5, rank_x, C) in the order w k v r g
  vector decay;                                       // (A)
  matrix decay_w1, decay_w2;                          // (C, rank_w) (rank_w, A)
  vector bonus;                                       // (H, N)
  matrix receptance, key, value, gate;                // (A, C)
  matrix output;                                      // (C, A)
  vector ln_x_weight, ln_x_bias;                      // (A)
  vector ffn_maa_k, ffn_maa_r;                        // (C)
  matrix ffn_key, ffn_receptance, ffn_value;          // (F, C) (C, C) (C, F)
  vector time_state;                                  // (H, N, N), absent: zeros

  /// visit(spec, tensor of each argument...) for each tensor.
  template <typename Visit, typename... Layers>
  static void for_each_tensor(const Visit& visit, Layers&... of) {
    using enum extent;
    using enum presence;
    visit(tensor_spec{"ln1.weight", {C}}, of.ln1_weight...);
    visit(tensor_spec{"ln1.bias", {C}}, of.ln1_bias...);
    visit(tensor_spec{"ln2.weight", {C}}, of.ln2_weight...);
    visit(tensor_spec{"ln2.bias", {C}}, of.ln2_bias...);
    visit(tensor_spec{"att.time_maa_x", {C}}, of.maa_x...);
    visit(tensor_spec{"att.time_maa_w", {C}}, of.maa_w...);
    visit(tensor_spec{"att.time_maa_k", {C}}, of.maa_k...);
    visit(tensor_spec{"att.time_maa_v", {C}}, of.maa_v...);
    visit(tensor_spec{"att.time_maa_r", {C}}, of.maa_r...);
    visit(tensor_spec{"att.time_maa_g", {C}}, of.maa_g...);
    visit(tensor_spec{"att.time_maa_w1", {C, five_rank_x}, always, true}, of.maa_w1...);
    visit(tensor_spec{"att.time_maa_w2", {five, rank_x, C}, always, true}, of.maa_w2...);
    visit(tensor_spec{"att.time_decay", {A}}, of.decay...);
    visit(tensor_spec{"att.time_decay_w1", {C, rank_w}, always, true}, of.decay_w1...);
    visit(tensor_spec{"att.time_decay_w2", {rank_w, A}, always, true}, of.decay_w2...);
    visit(tensor_spec{"att.time_faaaa", {H, N}}, of.bonus...);
    visit(tensor_spec{"att.receptance.weight", {A, C}}, of.receptance...);
    visit(tensor_spec{"att.key.weight", {A, C}}, of.key...);
    visit(tensor_spec{"att.value.weight", {A, C}}, of.value...);
    visit(tensor_spec{"att.gate.weight", {A, C}}, of.gate...);
    visit(tensor_spec{"att.output.weight", {C, A}}, of.output...);
    visit(tensor_spec{"att.ln_x.weight", {A}}, of.ln_x_weight...);
    visit(tensor_spec{"att.ln_x.bias", {A}}, of.ln_x_bias...);
    visit(tensor_spec{"ffn.time_maa_k", {C}}, of.ffn_maa_k...);
    visit(tensor_spec{"ffn.time_maa_r", {C}}, of.ffn_maa_r...);
    visit(tensor_spec{"ffn.key.weight", {F, C}}, of.ffn_key...);
    visit(tensor_spec{"ffn.receptance.weight", {C, C}}, of.ffn_receptance...);
    visit(tensor_spec{"ffn.value.weight", {C, F}}, of.ffn_value...);
    visit(tensor_spec{"att.time_state", {H, N, N}, optional}, of.time_state...);
  }
};

}  // namespace skein::kernels
