#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "model/files/file_bytes.hpp"

/// Changes of views that need no memory.
namespace skein::model {

/// The same elements in another row-major shape.
void set_row_major(tensor_view& view, std::vector<std::int64_t> shape);

/// False if there is one axis only.
[[nodiscard]] bool swap_last_axes(tensor_view& view);

/// Part `index` of the `rows` equal parts of a row-major tensor, as a tensor of that name with the shape (1, 1, n).
[[nodiscard]] found_tensor row_of(const found_tensor& whole, std::size_t index, std::size_t rows, std::string name);

}  // namespace skein::model
