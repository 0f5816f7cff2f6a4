#pragma once
#include "kernels/weights/tensor_spec.hpp"

namespace skein::kernels {

/// One layer of RWKV-4 ("Dove", arXiv 2305.13048). It has no heads: each channel keeps a weighted mean of its values.
template <typename Types>
struct rwkv4_layer_of {
  using vector = typename Types::vector;
  using matrix = typename Types::matrix;

  vector ln1_weight, ln1_bias, ln2_weight, ln2_bias;  // (C)
  vector mix_k, mix_v, mix_r;                         // (C) shares of the newest token
  vector decay;                                       // (A) logarithm of what a token subtracts from the exponent
  vector bonus;                                       // (A) added to the exponent of the newest token
  matrix receptance, key, value;                      // (A, C)
  matrix output;                                      // (C, A)
  vector ffn_mix_k, ffn_mix_r;                        // (C)
  matrix ffn_key, ffn_receptance, ffn_value;          // (F, C) (C, C) (C, F)

  /// visit(spec, tensor of each argument...) for each tensor.
  template <typename Visit, typename... Layers>
  static void for_each_tensor(const Visit& visit, Layers&... of) {
    using enum extent;
    visit(tensor_spec{"ln1.weight", {C}}, of.ln1_weight...);
    visit(tensor_spec{"ln1.bias", {C}}, of.ln1_bias...);
    visit(tensor_spec{"ln2.weight", {C}}, of.ln2_weight...);
    visit(tensor_spec{"ln2.bias", {C}}, of.ln2_bias...);
    visit(tensor_spec{"att.time_mix_k", {C}}, of.mix_k...);
    visit(tensor_spec{"att.time_mix_v", {C}}, of.mix_v...);
    visit(tensor_spec{"att.time_mix_r", {C}}, of.mix_r...);
    visit(tensor_spec{"att.time_decay", {A}}, of.decay...);
    visit(tensor_spec{"att.time_first", {A}}, of.bonus...);
    visit(tensor_spec{"att.receptance.weight", {A, C}}, of.receptance...);
    visit(tensor_spec{"att.key.weight", {A, C}}, of.key...);
    visit(tensor_spec{"att.value.weight", {A, C}}, of.value...);
    visit(tensor_spec{"att.output.weight", {C, A}}, of.output...);
    visit(tensor_spec{"ffn.time_mix_k", {C}}, of.ffn_mix_k...);
    visit(tensor_spec{"ffn.time_mix_r", {C}}, of.ffn_mix_r...);
    visit(tensor_spec{"ffn.key.weight", {F, C}}, of.ffn_key...);
    visit(tensor_spec{"ffn.receptance.weight", {C, C}}, of.ffn_receptance...);
    visit(tensor_spec{"ffn.value.weight", {C, F}}, of.ffn_value...);
  }
};

}  // namespace skein::kernels
