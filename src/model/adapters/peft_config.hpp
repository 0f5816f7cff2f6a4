#pragma once
#include <filesystem>

#include "base/result.hpp"

namespace skein::model {

/// What is needed of the adapter_config.json of Hugging Face PEFT.
struct peft_config {
  enum class method : std::uint8_t { lora, miss };
  method type = method::lora;
  double alpha = 0;           ///< LoRA
  std::int64_t rank = 0;      ///< of most tensors; 0: not given
  bool rank_varies = false;   ///< by tensor
  bool root_of_rank = false;  ///< the scale is alpha / sqrt(rank), not alpha / rank
  bool dora = false;
  bool mini = false;  ///< MiSS: blocks that repeat along the outputs
};

/// Errors: missing_file, io, bad_file, unsupported for a method or an option that changes the merge in another way; the
/// text names the file and the field.
[[nodiscard]] result<peft_config> read_peft_config(const std::filesystem::path& path);

}  // namespace skein::model
