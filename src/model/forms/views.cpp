#include "model/forms/views.hpp"

#include <functional>
#include <numeric>
#include <utility>

namespace skein::model {

void set_row_major(tensor_view& view, std::vector<std::int64_t> shape) {
  view.blocks = {};
  view.shape = std::move(shape);
  view.stride.resize(view.shape.size());
  std::exclusive_scan(view.shape.rbegin(), view.shape.rend(), view.stride.rbegin(), std::int64_t{1},
                      std::multiplies<>());
}

bool swap_last_axes(tensor_view& view) {
  const std::size_t axes = view.shape.size();
  if (axes < 2) return false;
  view.blocks = {};
  std::swap(view.shape[axes - 2], view.shape[axes - 1]);
  std::swap(view.stride[axes - 2], view.stride[axes - 1]);
  return true;
}

found_tensor row_of(const found_tensor& whole, std::size_t index, std::size_t rows, std::string name) {
  found_tensor row = whole;
  row.name = std::move(name);
  const std::int64_t width = whole.view.elements() / static_cast<std::int64_t>(rows);
  row.view.data += index * static_cast<std::size_t>(width) * dtype_bytes(whole.view.type);
  set_row_major(row.view, {1, 1, width});
  return row;
}

}  // namespace skein::model
