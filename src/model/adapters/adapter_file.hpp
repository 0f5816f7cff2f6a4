#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/adapters/adapter_choice.hpp"
#include "model/files/found_model.hpp"

namespace skein::model {

/// What an adapter does to a tensor W of the model; a matrix has the shape (out, in), as in the checkpoint.
enum class adapter_kind : std::uint8_t {
  replacement,   ///< W = first
  lora,          ///< W += scale * second first; first (r, in), second (out, r)
  pissa_start,   ///< W -= second first, with which the training began
  dora_columns,  ///< LoRA, then W = M * W / (norms of its columns + 1e-6); third (in): M
  dora_rows,     ///< LoRA, then W = M * W / norms of its rows; third (out): M
  bone_columns,  ///< block (a, b) += scale * (block G[b] + G[b]), for blocks of r x r; first (in / r, r, r): G
  bone_rows,     ///< likewise with G[a]; first (out / r, r, r)
  miss,          ///< W[o, i] += scale * first[i mod r, o mod columns]; first (r, out)
};

struct adapter_part {
  std::string target;  ///< name of the tensor, or that name without ".weight"
  std::string name;    ///< of the adapter's tensor, for errors
  adapter_kind kind = adapter_kind::replacement;
  double scale = 1;
  tensor_view first, second, third;
  bool repeats = false;  ///< MiSS "mini": (r, m), repeated along the outputs
};

struct adapter_file {
  std::filesystem::path path;
  found_model memory;  ///< the views point into it
  std::vector<adapter_part> parts;
};

/// Reads adapters of all kinds that docs/weights.md describes; which one it is follows from the tensors' names. All
/// tensors are finite and of floating types, and those of one part fit each other.
/// Errors: those of add_file and read_peft_config; bad_file for tensors of an unknown kind, for parts of which a
/// tensor is missing, for the start of PiSSA without what was trained, for NaN and infinity; invalid_argument (adapter)
/// if the scale is not in the file and not given.
[[nodiscard]] result<std::vector<adapter_file>> read_adapters(std::span<const adapter_choice> choices);

}  // namespace skein::model
