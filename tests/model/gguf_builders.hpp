#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/model/checkpoint_builders.hpp"

/// Writers of GGUF files for tests: any file, and models as llama.cpp's converter writes them.
namespace skein::test {

struct gguf_tensor_plan {
  std::string name;
  std::vector<std::uint64_t> shape;  ///< outermost first
  std::uint32_t type;                ///< of ggml
  std::string data;
};

class gguf_builder {
 public:
  /// A key-value pair; `value` with its type in front (below).
  gguf_builder& pair(std::string_view key, std::string_view value);
  gguf_builder& tensor(gguf_tensor_plan plan);
  gguf_builder& version(std::uint32_t number) { return version_ = number, *this; }
  /// Of the data; also writes general.alignment.
  gguf_builder& alignment(std::uint32_t bytes);

  [[nodiscard]] std::string file() const;
  /// Where the pairs end and the descriptions of the tensors begin, and where the description of a tensor has its
  /// number of dimensions.
  [[nodiscard]] std::size_t descriptions() const { return 24 + pairs_.size(); }
  [[nodiscard]] std::size_t dimensions_of(std::size_t index) const;
  /// Of the data of all tensors.
  [[nodiscard]] std::size_t data_begin() const;

 private:
  [[nodiscard]] std::string description(std::size_t index) const;

  std::uint32_t version_ = 3, alignment_ = 32;
  std::uint64_t pair_count_ = 0;
  std::string pairs_;
  std::vector<gguf_tensor_plan> tensors_;
};

/// Values of pairs, with their types.
namespace gguf {
[[nodiscard]] std::string string(std::string_view text);  ///< without a type: length and bytes
[[nodiscard]] std::string text(std::string_view text);
[[nodiscard]] std::string number(std::uint32_t value);
[[nodiscard]] std::string real(float value);
[[nodiscard]] std::string array(std::uint32_t type, std::uint64_t count, std::string_view elements);
[[nodiscard]] std::string texts(const std::vector<std::string>& all);
}  // namespace gguf

/// Types of ggml.
enum : std::uint32_t {
  ggml_f32 = 0,
  ggml_f16 = 1,
  ggml_q4_0 = 2,
  ggml_q4_1 = 3,
  ggml_q5_0 = 6,
  ggml_q5_1 = 7,
  ggml_q8_0 = 8,
  ggml_q2_k = 10,
  ggml_q3_k = 11,
  ggml_q4_k = 12,
  ggml_q5_k = 13,
  ggml_q6_k = 14,
  ggml_bf16 = 30
};
struct ggml_block {
  std::uint32_t type;
  const char* name;
  std::size_t values, bytes;
};
/// The quantised types.
[[nodiscard]] const std::vector<ggml_block>& ggml_blocks();
/// Bytes of random blocks whose scales are finite and small.
[[nodiscard]] std::string random_blocks(const ggml_block& type, std::size_t blocks, std::uint32_t seed);
/// Value `index` of a block, computed in double from the description of the format.
[[nodiscard]] double block_value(std::uint32_t type, std::string_view block, std::size_t index);
/// All values of blocks, rounded to fp32.
[[nodiscard]] std::vector<float> block_values(const ggml_block& type, std::string_view blocks);

/// A tensor of a model: row-major values.
struct values_of_tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

/// How convert_hf_to_gguf.py writes a model.
struct gguf_model_form {
  bool seven = true;                ///< rwkv7, else rwkv6
  std::uint32_t matrix = ggml_f16;  ///< type of matrices: F32, F16, BF16, or quantised: random blocks where they fit
  std::uint32_t head_size = 64;
  std::uint32_t rescale_every = 6;  ///< rwkv6
  bool fused = true;                ///< rwkv6: one tensor of five token shifts
  bool dummies = true;              ///< rwkv7: v0, v1, v2 in layer 0
};
/// The tensors of a model with original names, as llama.cpp names and stores them.
[[nodiscard]] std::vector<gguf_tensor_plan> gguf_plan_of(const std::vector<values_of_tensor>& model,
                                                         const gguf_model_form& form);
/// The file with the keys that llama.cpp writes.
[[nodiscard]] gguf_builder gguf_model_of(const std::vector<gguf_tensor_plan>& plan, const gguf_model_form& form,
                                         std::uint32_t layers, std::uint32_t embd, std::uint32_t ffn);
/// The tensors of an RWKV-7 model of these sizes, with random values that are exact in fp16 and bf16.
[[nodiscard]] std::vector<values_of_tensor> random_rwkv7(const kernels::model_dims& dims);
/// The tensors of a small RWKV-6 model of that kind: 4 layers, 2 heads of 4.
[[nodiscard]] std::vector<values_of_tensor> small_rwkv6();

/// The pairs of a vocabulary: "<s>", then the escaped texts.
void add_vocabulary(gguf_builder& file, const std::vector<std::string>& escaped, std::size_t unused = 0);

}  // namespace skein::test
