#include "tests/kernels/random_weights.hpp"

#include <cmath>
#include <string_view>

namespace skein::test {
namespace {

struct range {
  float centre, spread;
};

bool is_matrix(std::string_view name, std::size_t dimensions) {
  return dimensions >= 2 && !name.ends_with("r_k") && !name.ends_with("time_faaaa") && !name.ends_with("time_first") &&
         !name.ends_with("time_decay") && !name.ends_with("time_state");
}

/// Values of a vector, by what it does.
range range_of(std::string_view name) {
  if (name.ends_with(".bias")) return {0, 0.2f};
  if (name.ends_with(".weight")) return {1, 0.2f};  // norms
  if (name.find("time_mix_") != name.npos || name.find("time_maa_") != name.npos || name.find(".x_") != name.npos)
    return {0.5f, 0.5f};
  if (name.ends_with("time_decay")) return {-1, 2};
  if (name.ends_with("w0")) return {-1, 2};
  if (name.ends_with("k_k")) return {0.8f, 0.3f};
  if (name.ends_with("k_a")) return {1, 0.2f};
  if (name.ends_with("time_state")) return {0, 1};
  return {0, name.ends_with("r_k") ? 0.3f : 1.0f};
}

}  // namespace

tensor_view random_weights::made(const kernels::tensor_spec& spec, const kernels::model_dims& dims) {
  std::vector<std::int64_t> shape;
  std::int64_t count = 1;
  for (const kernels::extent e : spec.shape)
    if (e != kernels::extent::none) shape.push_back(value_of(e, dims)), count *= shape.back();
  const bool matrix = is_matrix(spec.name, shape.size());
  range from = range_of(spec.name);
  if (matrix) {
    const std::int64_t inputs = spec.name == "emb.weight" ? 3
                                : spec.transposed         ? shape[shape.size() - 2]
                                                          : shape.back();
    from = {0, std::sqrt(3.0f / static_cast<float>(inputs))};
  }
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = from.centre + from.spread * random_.value();
  const dtype type = matrix ? matrix_type_ : dtype::f32;
  memory_.push_back(encode(values, type));
  tensor_view view{memory_.back().data(), type, shape, std::vector<std::int64_t>(shape.size(), 1)};
  for (std::size_t i = shape.size(); i-- > 1;) view.stride[i - 1] = view.stride[i] * view.shape[i];
  return view;
}

bool random_weights::present(const kernels::tensor_spec& spec, std::uint32_t layer) const {
  if (spec.when == kernels::presence::always) return true;
  if (spec.when == kernels::presence::after_first) return layer > 0;
  if (spec.name == "att.time_state") return with_time_state_;
  const bool logarithm = version_ == version::v5_1_log;
  if (spec.name == "att.time_first") return logarithm;
  return !logarithm;  // the bonus itself, and the gate
}

template <template <typename> typename Layer>
void random_weights::fill(const kernels::model_dims& dims) {
  using views = kernels::checkpoint_views;
  kernels::weights_of<views, Layer> weights;
  weights.dims = dims;
  kernels::outer_weights_of<views>::for_each_tensor(
      [&](const kernels::tensor_spec& spec, tensor_view& to) { to = made(spec, dims); }, weights);
  for (std::uint32_t layer = 0; layer < dims.layers; ++layer)
    Layer<views>::for_each_tensor(
        [&](const kernels::tensor_spec& spec, tensor_view& to) {
          if (present(spec, layer)) to = made(spec, dims);
        },
        weights.layers.emplace_back());
  weights_ = std::move(weights);
}

random_weights::random_weights(version of, const kernels::model_dims& dims, dtype matrix_type, std::uint64_t seed,
                               bool with_time_state)
    : version_(of), matrix_type_(matrix_type), random_(seed), with_time_state_(with_time_state) {
  kernels::model_dims sized = dims;
  if (of == version::v4) sized.heads = sized.head_size = 0;
  if (of == version::v5_1 || of == version::v5_1_log) sized.decays = 1;
  if (of == version::v5_2) sized.decays = dims.head_size;
  switch (of) {
    case version::v4: fill<kernels::rwkv4_layer_of>(sized); break;
    case version::v5_1:
    case version::v5_1_log:
    case version::v5_2: fill<kernels::rwkv5_layer_of>(sized); break;
    case version::v6: fill<kernels::rwkv6_layer_of>(sized); break;
    case version::v7: fill<kernels::rwkv7_layer_of>(sized); break;
  }
}

}  // namespace skein::test
