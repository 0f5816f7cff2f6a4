#include "base/check.hpp"
#include "kernels/ops.hpp"

namespace skein::kernels {

dense_matrix load_dense(const tensor_view& view, bool transposed) {
  check(view.shape.size() == 2);
  tensor_view turned = view;
  if (transposed) {
    std::swap(turned.shape[0], turned.shape[1]);
    std::swap(turned.stride[0], turned.stride[1]);
  }
  dense_matrix matrix{static_cast<std::size_t>(turned.shape[0]), static_cast<std::size_t>(turned.shape[1]), {}};
  matrix.values.resize(matrix.outputs * matrix.inputs);
  copy_to_f32(turned, matrix.values);
  return matrix;
}

void linear(const dense_matrix& matrix, row x, row_out out) {
  check(x.size() == matrix.inputs);
  check(out.size() == matrix.outputs);
  const float* weight = matrix.values.data();
  for (float& result : out) {
    double sum = 0;
    for (const float value : x) sum += static_cast<double>(*weight++) * value;
    result = static_cast<float>(sum);
  }
}

}  // namespace skein::kernels
