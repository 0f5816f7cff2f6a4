#include "kernels/gpu/model/prepared_vectors.hpp"

#include <cmath>

namespace skein::kernels::gpu {
namespace {

/// Replaces a view, unless it is absent, by function(value) of each of its values, or several times each if there are
/// to be more.
template <typename Function>
void replace(tensor_view& view, std::size_t count, std::deque<std::vector<float>>& memory, const Function& function) {
  if (!view.data) return;
  std::vector<float> values(static_cast<std::size_t>(view.elements()));
  copy_to_f32(view, values);
  std::vector<float>& all = memory.emplace_back(count);
  const std::size_t repeated = count / values.size();
  for (std::size_t i = 0; i < count; ++i) all[i] = function(values[i / repeated]);
  view = {reinterpret_cast<const std::byte*>(all.data()), dtype::f32, {static_cast<std::int64_t>(count)}, {1}};
}

float previous_share(float newest) { return 1 - newest; }

}  // namespace

prepared_weights<rwkv4_layer_of> prepare(const rwkv4_weights& weights) {
  prepared_weights<rwkv4_layer_of> prepared{weights, {}};
  const model_dims& dims = weights.dims;
  for (rwkv4_layer& l : prepared.weights.layers) {
    for (tensor_view* mix : {&l.mix_k, &l.mix_v, &l.mix_r, &l.ffn_mix_k, &l.ffn_mix_r})
      replace(*mix, dims.embd, prepared.memory, previous_share);
    replace(l.decay, dims.att(), prepared.memory, [](float logarithm) { return std::exp(logarithm); });
  }
  return prepared;
}

prepared_weights<rwkv5_layer_of> prepare(const rwkv5_weights& weights) {
  prepared_weights<rwkv5_layer_of> prepared{weights, {}};
  const model_dims& dims = weights.dims;
  for (rwkv5_layer& l : prepared.weights.layers) {
    for (tensor_view* mix : {&l.mix_k, &l.mix_v, &l.mix_r, &l.mix_g, &l.ffn_mix_k, &l.ffn_mix_r})
      replace(*mix, dims.embd, prepared.memory, previous_share);
    replace(l.decay, dims.att(), prepared.memory, [](float stored) { return std::exp(-std::exp(stored)); });
    replace(l.bonus, dims.att(), prepared.memory, [](float bonus) { return bonus; });
    replace(l.log_bonus, dims.att(), prepared.memory, [](float logarithm) { return std::exp(logarithm); });
    if (!l.bonus.data) l.bonus = l.log_bonus;
    l.log_bonus = {};
  }
  return prepared;
}

}  // namespace skein::kernels::gpu
