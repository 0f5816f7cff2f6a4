#include "kernels/weights/unmatched_patterns.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace skein::kernels {
namespace {

/// Tells matrices from vectors and embeddings.
struct tensor_kinds {
  struct vector {
    static constexpr bool is_matrix = false;
  };
  using table = vector;
  using stack = vector;
  struct matrix {
    static constexpr bool is_matrix = true;
  };
};

struct matrix_place {
  std::string_view name;  ///< as patterns name it
  std::uint32_t layer;
};

template <template <typename> typename Layer>
std::vector<matrix_place> matrices_of(const weights_of<checkpoint_views, Layer>& weights) {
  std::vector<matrix_place> found;
  const outer_weights_of<tensor_kinds> outer;
  const Layer<tensor_kinds> kinds;
  std::uint32_t layer = 0;
  const auto add = [&](const tensor_spec& spec, const tensor_view& view, const auto& kind) {
    if (view.data && kind.is_matrix && !spec.transposed) found.push_back({weight_plan::pattern_name(spec), layer});
  };
  outer_weights_of<checkpoint_views>::for_each_tensor(add, weights, outer);
  for (; layer < weights.layers.size(); ++layer)
    Layer<checkpoint_views>::for_each_tensor(add, weights.layers[layer], kinds);
  return found;
}

std::string list_of(const std::vector<matrix_place>& matrices) {
  std::vector<std::string_view> names;
  for (const auto& each : matrices)
    if (std::ranges::find(names, each.name) == names.end()) names.push_back(each.name);
  std::string list;
  for (const std::string_view name : names) list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

}  // namespace

result<void> refuse_unmatched_patterns(const model_weights& weights, const weight_plan& plan) {
  const auto matrices = std::visit([](const auto& of) { return matrices_of(of); }, weights);
  for (const auto& rule : plan.rules()) {
    const auto is_matched = [&](const matrix_place& each) { return rule.matches(each.name, each.layer); };
    if (rule.written.empty() || std::ranges::any_of(matrices, is_matched)) continue;
    return error{error_kind::invalid_argument,
                 "weight_format: " + rule.written + " matches no matrix of the model; its matrices: " +
                     list_of(matrices) + "; layers: 0 to " + std::to_string(dims_of(weights).layers - 1),
                 "weight_format"};
  }
  return {};
}

}  // namespace skein::kernels
