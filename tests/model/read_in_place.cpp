#include "tests/model/read_in_place.hpp"

#include <vector>

#include "model/files/pth.hpp"
#include "model/files/safetensors.hpp"

namespace skein::test {

void read_in_place(model::byte_span bytes) {
  const auto found = model::looks_like_pth(bytes) ? model::read_pth(bytes) : model::read_safetensors(bytes);
  if (!found) return;
  for (const auto& tensor : *found) {
    const auto& view = tensor.view;
    if (view.type > dtype::f64) continue;  // integers have no conversion
    std::vector<float> values(static_cast<std::size_t>(view.elements()));
    copy_to_f32(view, values);
  }
}

}  // namespace skein::test
