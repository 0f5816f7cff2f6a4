#include "kernels/weights/model_weights.hpp"

#include <optional>
#include <string>

namespace skein::kernels {

tensor_view matrix_of(const tensor_view& stack, std::size_t index) {
  tensor_view matrix{nullptr,
                     stack.type,
                     {stack.shape.begin() + 1, stack.shape.end()},
                     {stack.stride.begin() + 1, stack.stride.end()}};
  matrix.data = stack.data + static_cast<std::ptrdiff_t>(dtype_bytes(stack.type)) * stack.stride[0] *
                                 static_cast<std::ptrdiff_t>(index);
  return matrix;
}

const model_dims& dims_of(const model_weights& weights) {
  return std::visit([](const auto& of) -> const model_dims& { return of.dims; }, weights);
}

result<void> check_element_types(const model_weights& weights, bool accepted) {
  std::optional<error> wrong;
  const auto check_one = [&](const tensor_spec& spec, const tensor_view& view) {
    const dtype t = view.type;
    if (!wrong && view.quantised() && !accepted)
      wrong = error{error_kind::unsupported,
                    "weights " + std::string(spec.name) +
                        " are quantised, which this device cannot use; it needs the "
                        "model from which they were converted",
                    "dtype"};
    if (!wrong && t != dtype::f32 && t != dtype::bf16 && t != dtype::f16 && t != dtype::f64)
      wrong = error{error_kind::bad_file,
                    "weights " + std::string(spec.name) + " have the element type " + std::string(to_string(t)) +
                        "; floating-point types are supported",
                    ""};
  };
  std::visit([&](const auto& of) { for_each_view(of, check_one); }, weights);
  if (wrong) return *wrong;
  return {};
}

}  // namespace skein::kernels
