#pragma once
#include "kernels/weights/tensor_spec.hpp"

namespace skein::kernels {

/// One layer of RWKV-5 ("Eagle", arXiv 2404.05892). Version 5.1 has one decay and one bonus a head, version 5.2 one for
/// each channel and a gate; the older files store the logarithm of the bonus.
template <typename Types>
struct rwkv5_layer_of {
  using vector = typename Types::vector;
  using matrix = typename Types::matrix;

  vector ln1_weight, ln1_bias, ln2_weight, ln2_bias;  // (C)
  vector mix_k, mix_v, mix_r;                         // (C) shares of the newest token
  vector mix_g;                                       // (C), with a gate
  vector decay;                                       // (H, decays)
  vector bonus;                                       // (H, decays), or
  vector log_bonus;                                   // (H, decays) its logarithm
  matrix receptance, key, value;                      // (A, C)
  matrix gate;                                        // (A, C), optional
  matrix output;                                      // (C, A)
  vector ln_x_weight, ln_x_bias;                      // (A)
  vector ffn_mix_k, ffn_mix_r;                        // (C)
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
    visit(tensor_spec{"att.time_mix_k", {C}}, of.mix_k...);
    visit(tensor_spec{"att.time_mix_v", {C}}, of.mix_v...);
    visit(tensor_spec{"att.time_mix_r", {C}}, of.mix_r...);
    visit(tensor_spec{"att.time_mix_g", {C}, optional}, of.mix_g...);
    visit(tensor_spec{"att.time_decay", {H, decays}}, of.decay...);
    visit(tensor_spec{"att.time_faaaa", {H, decays}, optional}, of.bonus...);
    visit(tensor_spec{"att.time_first", {H, decays}, optional}, of.log_bonus...);
    visit(tensor_spec{"att.receptance.weight", {A, C}}, of.receptance...);
    visit(tensor_spec{"att.key.weight", {A, C}}, of.key...);
    visit(tensor_spec{"att.value.weight", {A, C}}, of.value...);
    visit(tensor_spec{"att.gate.weight", {A, C}, optional}, of.gate...);
    visit(tensor_spec{"att.output.weight", {C, A}}, of.output...);
    visit(tensor_spec{"att.ln_x.weight", {A}}, of.ln_x_weight...);
    visit(tensor_spec{"att.ln_x.bias", {A}}, of.ln_x_bias...);
    visit(tensor_spec{"ffn.time_mix_k", {C}}, of.ffn_mix_k...);
    visit(tensor_spec{"ffn.time_mix_r", {C}}, of.ffn_mix_r...);
    visit(tensor_spec{"ffn.key.weight", {F, C}}, of.ffn_key...);
    visit(tensor_spec{"ffn.receptance.weight", {C, C}}, of.ffn_receptance...);
    visit(tensor_spec{"ffn.value.weight", {C, F}}, of.ffn_value...);
    visit(tensor_spec{"att.time_state", {H, N, N}, optional}, of.time_state...);
  }
};

}  // namespace skein::kernels
