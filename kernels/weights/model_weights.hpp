#pragma once
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "base/memory_plan.hpp"
#include "base/result.hpp"
#include "base/tensor.hpp"
#include "kernels/weights/rwkv4.hpp"
#include "kernels/weights/rwkv5.hpp"
#include "kernels/weights/rwkv6.hpp"
#include "kernels/weights/rwkv7.hpp"
#include "kernels/weights/tensor_spec.hpp"

/// The weights of a model of any version.
///
/// A layer template such as rwkv7_layer_of<Types> holds each tensor under its checkpoint name; Types says what a back
/// end makes of it: a view into the checkpoint, a packed matrix, device memory.
namespace skein::kernels {

/// The tensors outside of the layers: the same in every version.
template <typename Types>
struct outer_weights_of {
  typename Types::table emb;                          // (V, C)
  typename Types::vector ln0_weight, ln0_bias;        // (C)
  typename Types::vector ln_out_weight, ln_out_bias;  // (C)
  typename Types::matrix head;                        // (V, C)

  /// visit(spec, tensor of each argument...) for each tensor.
  template <typename Visit, typename... Weights>
  static void for_each_tensor(const Visit& visit, Weights&... of) {
    using enum extent;
    visit(tensor_spec{"emb.weight", {V, C}}, of.emb...);
    visit(tensor_spec{"blocks.0.ln0.weight", {C}}, of.ln0_weight...);
    visit(tensor_spec{"blocks.0.ln0.bias", {C}}, of.ln0_bias...);
    visit(tensor_spec{"ln_out.weight", {C}}, of.ln_out_weight...);
    visit(tensor_spec{"ln_out.bias", {C}}, of.ln_out_bias...);
    visit(tensor_spec{"head.weight", {V, C}}, of.head...);
  }
};

template <typename Types, template <typename> typename Layer>
struct weights_of : outer_weights_of<Types> {
  model_dims dims;
  std::vector<Layer<Types>> layers;
};

/// Views into a checkpoint: shapes are checked by model/weights, strides may be anything, data is null if absent.
struct checkpoint_views {
  using vector = tensor_view;
  using table = tensor_view;
  using matrix = tensor_view;
  using stack = tensor_view;
};

using rwkv4_layer = rwkv4_layer_of<checkpoint_views>;
using rwkv5_layer = rwkv5_layer_of<checkpoint_views>;
using rwkv6_layer = rwkv6_layer_of<checkpoint_views>;
using rwkv7_layer = rwkv7_layer_of<checkpoint_views>;
using rwkv4_weights = weights_of<checkpoint_views, rwkv4_layer_of>;
using rwkv5_weights = weights_of<checkpoint_views, rwkv5_layer_of>;
using rwkv6_weights = weights_of<checkpoint_views, rwkv6_layer_of>;
using rwkv7_weights = weights_of<checkpoint_views, rwkv7_layer_of>;

/// The weights of a checkpoint; the alternative is the version.
using model_weights = std::variant<rwkv4_weights, rwkv5_weights, rwkv6_weights, rwkv7_weights>;

/// visit(spec, view) for each tensor that is present, first the outer ones, then layer by layer.
template <template <typename> typename Layer, typename Visit>
void for_each_view(const weights_of<checkpoint_views, Layer>& weights, const Visit& visit) {
  const auto present = [&](const tensor_spec& spec, const tensor_view& view) {
    if (view.data) visit(spec, view);
  };
  outer_weights_of<checkpoint_views>::for_each_tensor(present, weights);
  for (const auto& layer : weights.layers) Layer<checkpoint_views>::for_each_tensor(present, layer);
}

/// Matrix `index` of a view with three dimensions.
[[nodiscard]] tensor_view matrix_of(const tensor_view& stack, std::size_t index);

[[nodiscard]] const model_dims& dims_of(const model_weights& weights);

/// bad_file unless every tensor has a floating element type; unsupported for quantised ones unless they are `accepted`.
[[nodiscard]] result<void> check_element_types(const model_weights& weights, bool accepted = false);

/// Tells a start-up observer how far the weights are: bytes done of all.
struct load_progress {
  void (*report)(void* context, std::uint64_t done, std::uint64_t total) = nullptr;
  void* context = nullptr;
};

}  // namespace skein::kernels
