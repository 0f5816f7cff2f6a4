#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/model_info.hpp"
#include "model/tensor_lookup.hpp"

namespace skein::model {
namespace {

using kernels::checkpoint_views;
using kernels::presence;
using kernels::tensor_spec;

/// Binds the tensors of one checkpoint. Keeps the first fault.
class binder {
 public:
  binder(const checkpoint& file, const model_info& info) : file_(file), info_(info), dims_(info.dims()) {}

  template <template <typename> typename Layer>
  result<kernels::weights_of<checkpoint_views, Layer>> all() {
    kernels::weights_of<checkpoint_views, Layer> weights;
    weights.dims = dims_;
    kernels::outer_weights_of<checkpoint_views>::for_each_tensor(
        [&](const tensor_spec& spec, tensor_view& to) { one(std::string(spec.name), spec, to); }, weights);
    for (std::uint32_t layer = 0; layer < info_.layers && !fault_; ++layer)
      Layer<checkpoint_views>::for_each_tensor(
          [&](const tensor_spec& spec, tensor_view& to) {
            if (wanted(layer, spec)) one(block_name(layer, spec.name), spec, to);
          },
          weights.layers.emplace_back());
    if (fault_) return *fault_;
    return weights;
  }

 private:
  void one(const std::string& name, const tensor_spec& spec, tensor_view& to) {
    if (fault_) return;
    std::vector<std::int64_t> shape;
    for (const kernels::extent e : spec.shape)
      if (e != kernels::extent::none) shape.push_back(value_of(e, dims_));
    const bool is_matrix = shape.size() == 2 && !spec.transposed && spec.name != "emb.weight";
    if (auto view = find_shaped(file_, name, shape, is_matrix))
      to = std::move(*view);
    else
      fault_ = view.error();
  }

  /// If one layer has an optional tensor, all must: a model that has it in part is damaged.
  [[nodiscard]] bool wanted(std::uint32_t layer, const tensor_spec& spec) const {
    switch (spec.when) {
      case presence::always: return true;
      case presence::after_first: return layer > 0;
      case presence::optional: break;
    }
    for (std::uint32_t each = 0; each < info_.layers; ++each)
      if (file_.find(block_name(each, spec.name))) return true;
    return false;
  }

  const checkpoint& file_;
  const model_info& info_;
  const kernels::model_dims dims_;
  std::optional<error> fault_;
};

/// A model of version 5 has one of two forms of the bonus, and both tensors of the gate or none.
result<kernels::model_weights> checked(const checkpoint& file, kernels::rwkv5_weights&& weights) {
  for (std::uint32_t layer = 0; layer < weights.layers.size(); ++layer) {
    const auto& l = weights.layers[layer];
    if (!l.bonus.data && !l.log_bonus.data) return misfit(file, block_name(layer, "att.time_faaaa"), "is missing");
    if (l.gate.data && !l.mix_g.data) return misfit(file, block_name(layer, "att.time_mix_g"), "is missing");
    if (!l.gate.data && l.mix_g.data) return misfit(file, block_name(layer, "att.gate.weight"), "is missing");
  }
  return kernels::model_weights(std::move(weights));
}

template <template <typename> typename Layer>
bool lists(std::string_view name) {
  bool found = false;
  Layer<checkpoint_views> layer;
  Layer<checkpoint_views>::for_each_tensor(
      [&](const tensor_spec& spec, const tensor_view&) { found = found || spec.name == name; }, layer);
  return found;
}

}  // namespace

bool has_layer_tensor(rwkv_version version, std::string_view name) {
  switch (version) {
    case rwkv_version::v4: return lists<kernels::rwkv4_layer_of>(name);
    case rwkv_version::v5_1:
    case rwkv_version::v5_2: return lists<kernels::rwkv5_layer_of>(name);
    case rwkv_version::v6: return lists<kernels::rwkv6_layer_of>(name);
    case rwkv_version::v7: return lists<kernels::rwkv7_layer_of>(name);
  }
  return false;
}

result<kernels::model_weights> bind(const checkpoint& file, const model_info& info) {
  binder tensors(file, info);
  const auto any = [](auto weights) -> result<kernels::model_weights> {
    if (!weights) return weights.error();
    return kernels::model_weights(std::move(*weights));
  };
  switch (info.version) {
    case rwkv_version::v4: return any(tensors.all<kernels::rwkv4_layer_of>());
    case rwkv_version::v5_1:
    case rwkv_version::v5_2: {
      auto weights = tensors.all<kernels::rwkv5_layer_of>();
      if (!weights) return weights.error();
      return checked(file, std::move(*weights));
    }
    case rwkv_version::v6: return any(tensors.all<kernels::rwkv6_layer_of>());
    case rwkv_version::v7: break;
  }
  return any(tensors.all<kernels::rwkv7_layer_of>());
}

}  // namespace skein::model
