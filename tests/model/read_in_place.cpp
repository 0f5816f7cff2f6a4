#include "tests/model/read_in_place.hpp"

#include <vector>

#include "model/files/gguf.hpp"
#include "model/files/gguf_model.hpp"
#include "model/files/pth.hpp"
#include "model/files/rwkv_cpp_file.hpp"
#include "model/files/safetensors.hpp"
#include "model/forms/llama_cpp.hpp"
#include "model/forms/rwkv_cpp.hpp"

namespace skein::test {

namespace {

void read_all(const std::vector<model::found_tensor>& tensors) {
  for (const auto& tensor : tensors) {
    const auto& view = tensor.view;
    if (view.type > dtype::f64) continue;  // integers have no conversion
    std::vector<float> values(static_cast<std::size_t>(view.elements()));
    copy_to_f32(view, values);
  }
}

}  // namespace

void read_in_place(model::byte_span bytes) {
  if (model::looks_like_gguf(bytes)) {
    model::found_model found;
    if (!model::read_gguf(bytes, found)) return;
    read_all(found.tensors);
    if (model::from_llama_cpp(found)) read_all(found.tensors);
    return;
  }
  if (model::looks_like_rwkv_cpp(bytes)) {
    model::found_model found;
    if (model::read_rwkv_cpp(bytes, found) && model::from_rwkv_cpp(found)) read_all(found.tensors);
    return;
  }
  const auto found = model::looks_like_pth(bytes) ? model::read_pth(bytes) : model::read_safetensors(bytes);
  if (found) read_all(*found);
}

}  // namespace skein::test
