#include "tests/engine/random_rwkv7.hpp"

#include <utility>

namespace skein::test {

random_rwkv7::random_rwkv7(const kernels::rwkv7_dims& dims, std::uint64_t seed) : random_state_(seed) {
  const std::int64_t C = dims.embd, F = dims.ffn, V = dims.vocab;
  const auto vector = [&](float low, float high) { return tensor({C}, low, high); };
  const auto matrix = [&](std::int64_t rows, std::int64_t columns) { return tensor({rows, columns}, -0.4f, 0.4f); };
  weights_.dims = dims;
  weights_.emb = tensor({V, C}, -1, 1);
  weights_.ln0_weight = vector(0.5f, 1.5f);
  weights_.ln0_bias = vector(-0.2f, 0.2f);
  for (std::uint32_t i = 0; i < dims.layers; ++i) {
    kernels::rwkv7_layer l;
    for (tensor_view* weight : {&l.ln1_weight, &l.ln2_weight, &l.ln_x_weight, &l.k_k, &l.k_a})
      *weight = vector(0.5f, 1.5f);
    for (tensor_view* bias : {&l.ln1_bias, &l.ln2_bias, &l.ln_x_bias, &l.w0, &l.a0}) *bias = vector(-0.5f, 0.5f);
    for (tensor_view* mix : {&l.x_r, &l.x_w, &l.x_k, &l.x_v, &l.x_a, &l.x_g, &l.ffn_x_k}) *mix = vector(0, 1);
    l.w1 = matrix(C, dims.rank_w);
    l.w2 = matrix(dims.rank_w, C);
    l.a1 = matrix(C, dims.rank_a);
    l.a2 = matrix(dims.rank_a, C);
    if (i > 0) {
      l.v0 = vector(-0.5f, 0.5f);
      l.v1 = matrix(C, dims.rank_v);
      l.v2 = matrix(dims.rank_v, C);
    }
    l.g1 = matrix(C, dims.rank_g);
    l.g2 = matrix(dims.rank_g, C);
    l.r_k = matrix(dims.heads, dims.head_size);
    for (tensor_view* projection : {&l.receptance, &l.key, &l.value, &l.output}) *projection = matrix(C, C);
    l.ffn_key = matrix(F, C);
    l.ffn_value = matrix(C, F);
    weights_.layers.push_back(std::move(l));
  }
  weights_.ln_out_weight = vector(0.5f, 1.5f);
  weights_.ln_out_bias = vector(-0.2f, 0.2f);
  weights_.head = matrix(V, C);
}

tensor_view random_rwkv7::tensor(std::vector<std::int64_t> shape, float low, float high) {
  tensor_view view;
  view.type = dtype::f32;
  view.shape = std::move(shape);
  view.stride.assign(view.shape.size(), 1);
  for (std::size_t d = view.shape.size() - 1; d > 0; --d) view.stride[d - 1] = view.stride[d] * view.shape[d];
  std::vector<float>& values = values_.emplace_back(static_cast<std::size_t>(view.elements()));
  for (float& value : values) {
    random_state_ = random_state_ * 6364136223846793005u + 1442695040888963407u;
    value = low + (high - low) * static_cast<float>(random_state_ >> 40) * 0x1p-24f;
  }
  view.data = reinterpret_cast<const std::byte*>(values.data());
  return view;
}

}  // namespace skein::test
