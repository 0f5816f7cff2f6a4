#pragma once
#include "base/result.hpp"
#include "model/files/found_model.hpp"

namespace skein::model {

/// The tensors of a GGUF file of llama.cpp (`rwkv6`, `rwkv7`), given the names, shapes and orientation of the original
/// checkpoint. All changes are views, except for rwkv6's output and value matrices: llama.cpp's converter divides them
/// by 2^(layer / rescale_every_n_layers), and the multiplied copies are new memory.
/// Errors: bad_file naming the tensor, for tensors that the architecture does not have and for sizes that contradict
/// the keys of the file.
[[nodiscard]] result<void> from_llama_cpp(found_model& found);

}  // namespace skein::model
