#include "kernels/rwkv7_weights.hpp"

#include <string>

namespace skein::kernels {

std::vector<const tensor_view*> all_views(const rwkv7_weights& weights) {
  std::vector<const tensor_view*> views = {&weights.emb,           &weights.ln0_weight,  &weights.ln0_bias,
                                           &weights.ln_out_weight, &weights.ln_out_bias, &weights.head};
  for (const rwkv7_layer& l : weights.layers)
    views.insert(views.end(),
                 {&l.ln1_weight, &l.ln1_bias, &l.ln2_weight, &l.ln2_bias,  &l.x_r,        &l.x_w,        &l.x_k,
                  &l.x_v,        &l.x_a,      &l.x_g,        &l.w0,        &l.w1,         &l.w2,         &l.a0,
                  &l.a1,         &l.a2,       &l.v0,         &l.v1,        &l.v2,         &l.g1,         &l.g2,
                  &l.k_k,        &l.k_a,      &l.r_k,        &l.output,    &l.receptance, &l.key,        &l.value,
                  &l.ln_x_bias,  &l.ffn_x_k,  &l.ffn_key,    &l.ffn_value, &l.time_state, &l.ln_x_weight});
  std::erase_if(views, [](const tensor_view* view) { return view->data == nullptr; });
  return views;
}

result<void> check_element_types(const rwkv7_weights& weights) {
  for (const tensor_view* view : all_views(weights)) {
    const dtype t = view->type;
    if (t != dtype::f32 && t != dtype::bf16 && t != dtype::f16 && t != dtype::f64)
      return error{error_kind::bad_file, "a weight of the model has the element type " + std::string(to_string(t)), ""};
  }
  return {};
}

}  // namespace skein::kernels
