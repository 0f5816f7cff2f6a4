#include "tests/kernels/random_rwkv7.hpp"

#include <cmath>
#include <cstring>

namespace skein::test {

std::vector<std::byte> encode(const std::vector<float>& values, dtype type) {
  std::vector<std::byte> bytes(values.size() * dtype_bytes(type));
  std::byte* to = bytes.data();
  const auto put = [&](auto element) { std::memcpy(to, &element, sizeof element), to += sizeof element; };
  for (const float value : values) {
    switch (type) {
      case dtype::bf16: put(f32_to_bf16(value)); break;
      case dtype::f16: put(f32_to_f16(value)); break;
      case dtype::f64: put(static_cast<double>(value)); break;
      default: put(value);
    }
  }
  return bytes;
}

tensor_view view_of(const std::vector<std::byte>& bytes, dtype type, std::initializer_list<std::int64_t> shape) {
  tensor_view view{bytes.data(), type, shape, std::vector<std::int64_t>(shape.size(), 1)};
  for (std::size_t i = shape.size(); i-- > 1;) view.stride[i - 1] = view.stride[i] * view.shape[i];
  return view;
}

tensor_view random_rwkv7::tensor(std::initializer_list<std::int64_t> shape, float centre, float spread, dtype type) {
  std::int64_t count = 1;
  for (const auto size : shape) count *= size;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = centre + spread * random_.value();
  memory_.push_back(encode(values, type));
  return view_of(memory_.back(), type, shape);
}

tensor_view random_rwkv7::matrix(std::int64_t rows, std::int64_t columns, std::int64_t inputs) {
  return tensor({rows, columns}, 0, std::sqrt(3.0f / static_cast<float>(inputs)), matrix_type_);
}

tensor_view random_rwkv7::vector(float centre, float spread) {
  return tensor({weights_.dims.embd}, centre, spread, dtype::f32);
}

random_rwkv7::random_rwkv7(const kernels::model_dims& dims, dtype matrix_type, std::uint64_t seed, bool with_time_state)
    : random_(seed), matrix_type_(matrix_type) {
  weights_.dims = dims;
  const std::int64_t c = dims.embd, f = dims.ffn, v = dims.vocab, h = dims.heads, n = dims.head_size;
  weights_.emb = matrix(v, c, 3);
  weights_.ln0_weight = vector(1, 0.2f), weights_.ln0_bias = vector(0, 0.2f);
  weights_.ln_out_weight = vector(1, 0.2f), weights_.ln_out_bias = vector(0, 0.2f);
  weights_.head = matrix(v, c, c);
  for (std::uint32_t i = 0; i < dims.layers; ++i) {
    kernels::rwkv7_layer l;
    const auto low_rank = [&](tensor_view& first, tensor_view& second, std::int64_t rank) {
      first = matrix(c, rank, c);
      second = matrix(rank, c, rank);
    };
    l.ln1_weight = vector(1, 0.2f), l.ln1_bias = vector(0, 0.2f);
    l.ln2_weight = vector(1, 0.2f), l.ln2_bias = vector(0, 0.2f);
    for (tensor_view* mix : {&l.x_r, &l.x_w, &l.x_k, &l.x_v, &l.x_a, &l.x_g, &l.ffn_x_k}) *mix = vector(0.5f, 0.5f);
    l.w0 = vector(-1, 2), l.a0 = vector(0, 1);
    low_rank(l.w1, l.w2, dims.rank_w);
    low_rank(l.a1, l.a2, dims.rank_a);
    if (i > 0) l.v0 = vector(0, 1), low_rank(l.v1, l.v2, dims.rank_v);
    low_rank(l.g1, l.g2, dims.rank_g);
    l.k_k = vector(0.8f, 0.3f), l.k_a = vector(1, 0.2f);
    l.r_k = tensor({h, n}, 0, 0.3f, dtype::f32);
    for (tensor_view* square : {&l.receptance, &l.key, &l.value, &l.output}) *square = matrix(c, c, c);
    l.ln_x_weight = vector(1, 0.2f), l.ln_x_bias = vector(0, 0.2f);
    l.ffn_key = matrix(f, c, c), l.ffn_value = matrix(c, f, f);
    if (with_time_state) l.time_state = tensor({h, n, n}, 0, 0.3f, dtype::f32);
    weights_.layers.push_back(l);
  }
}

}  // namespace skein::test
