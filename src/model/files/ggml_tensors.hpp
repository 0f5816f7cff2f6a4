#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "model/files/found_model.hpp"

/// Tensors in the element types of ggml (llama.cpp, rwkv.cpp). Quantised types store blocks of 32 or 256 consecutive
/// values, each with scales of its own. Layouts: ggml-common.h of llama.cpp.
namespace skein::model {

struct ggml_type {
  std::uint32_t id;                                             ///< in GGUF files
  std::string_view name;                                        ///< "Q4_0"
  std::uint32_t values, bytes;                                  ///< of a block; 1 value if not quantised
  std::optional<dtype> plain;                                   ///< the same type here; nullopt: quantised
  void (*decode_block)(const std::byte* block, float* values);  ///< nullptr if not quantised
};

/// The type of this id; nullptr if it is unknown or not supported.
[[nodiscard]] const ggml_type* find_ggml_type(std::uint32_t id);
[[nodiscard]] const ggml_type* find_ggml_type(std::string_view name);
/// For messages: "IQ4_NL", or "number 77" if ggml has no such type.
[[nodiscard]] std::string ggml_type_name(std::uint32_t id);
/// For messages: the names of the supported types.
[[nodiscard]] std::string ggml_types_accepted();

/// Decodes whole blocks. The arithmetic is fp32, as in ggml: values of Q8_0, Q4_0, Q5_0, Q3_K and Q6_K are exact,
/// those of types with a minimum (Q4_1, Q5_1, Q2_K, Q4_K, Q5_K) are rounded once.
void decode_blocks(const ggml_type& type, byte_span blocks, std::span<float> values);

/// A tensor as a file of ggml stores it: blocks of consecutive values, row-major.
struct stored_tensor {
  std::string name;
  const ggml_type* type = nullptr;
  std::vector<std::int64_t> shape;  ///< outermost first, the opposite of the file; at least one dimension, none is 0
  byte_span data;                   ///< whole blocks
  std::uint64_t described_at = 0;

  [[nodiscard]] std::uint64_t elements() const { return data.size() / type->bytes * type->values; }
};

/// Appends the tensors. Those of 16 and 32 bits are views into the file. Quantised ones are decoded on all cores and
/// rounded once to fp16: half the memory of fp32, the type that GPUs compute with, and an error of at most 2^-11 of a
/// value, 1/16 of the distance between two values of Q8_0 or less. Values above 65504 become infinite and are then
/// refused as such. Views of Q8_0 and Q4_0 matrices also have their blocks in the file, except with codes of -128,
/// which our int8 does not have and ggml does not write. A note says what was decoded. Errors: no_memory.
[[nodiscard]] result<void> take_tensors(std::span<const stored_tensor> stored, found_model& found);

}  // namespace skein::model
