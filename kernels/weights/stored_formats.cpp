#include "kernels/weights/stored_formats.hpp"

#include <string>
#include <variant>

namespace skein::kernels {

namespace {

template <template <typename> typename Layer>
result<void> check_formats(const weights_of<checkpoint_views, Layer>& weights, const weight_plan& formats) {
  result<void> outcome;
  std::uint32_t layer = 0;
  const auto check_one = [&](const tensor_spec& spec, const tensor_view& view) {
    if (!outcome || !view.quantised() || formats.of(spec, layer) == format_of(view.codes)) return;
    outcome = error{error_kind::bad_file,
                    "weights " + std::string(spec.name) + " of layer " + std::to_string(layer) + " are quantised as " +
                        to_string(format_of(view.codes)) + ", but the file says " + to_string(formats.of(spec, layer)),
                    ""};
  };
  outer_weights_of<checkpoint_views>::for_each_tensor(check_one, weights);
  for (; layer < weights.layers.size(); ++layer)
    Layer<checkpoint_views>::for_each_tensor(check_one, weights.layers[layer]);
  return outcome;
}

}  // namespace

result<void> check_stored_formats(const model_weights& weights, const weight_plan& formats) {
  return std::visit([&](const auto& of) { return check_formats(of, formats); }, weights);
}

}  // namespace skein::kernels
