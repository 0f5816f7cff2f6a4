#include "cli/random_model.hpp"

#include <cmath>
#include <vector>

#include "cli/safetensors_writer.hpp"

namespace skein::cli {
namespace {

/// A tensor whose elements are even between low and high.
struct random_tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  float low, high;
};

/// Names and shapes of a released RWKV-7 checkpoint, with ranges near those of trained weights.
class tensor_list {
 public:
  explicit tensor_list(const kernels::rwkv7_dims& dims) : dims_(dims) {
    const std::int64_t embd = dims.embd, vocab = dims.vocab;
    matrix("emb.weight", vocab, embd);
    layer_norm("blocks.0.ln0");
    for (std::uint32_t layer = 0; layer < dims.layers; ++layer) add_layer(layer);
    layer_norm("ln_out");
    matrix("head.weight", vocab, embd);
  }
  [[nodiscard]] const std::vector<random_tensor>& tensors() const { return tensors_; }

 private:
  void add_layer(std::uint32_t layer) {
    const std::string block = "blocks." + std::to_string(layer) + '.', att = block + "att.", ffn = block + "ffn.";
    const std::int64_t embd = dims_.embd, wide = dims_.ffn;
    layer_norm(block + "ln1");
    layer_norm(block + "ln2");
    for (const char* mix : {"x_r", "x_w", "x_k", "x_v", "x_a", "x_g"}) vector(att + mix, 0, 1);
    low_rank(att + 'w', dims_.rank_w, -6, 0);  // sigmoid of this sets the decay: from slow to fast
    low_rank(att + 'a', dims_.rank_a, -1, 1);
    if (layer > 0) low_rank(att + 'v', dims_.rank_v, -1, 1);
    matrix(att + "g1", embd, dims_.rank_g);
    matrix(att + "g2", dims_.rank_g, embd);
    vector(att + "k_k", 0.5f, 1);
    vector(att + "k_a", 0.5f, 1);
    tensors_.push_back({att + "r_k", {dims_.heads, dims_.head_size}, -0.1f, 0.1f});
    for (const char* name : {"receptance", "key", "value", "output"}) matrix(att + name + ".weight", embd, embd);
    tensors_.push_back({att + "ln_x.weight", {embd}, 0.5f, 1});
    tensors_.push_back({att + "ln_x.bias", {embd}, -0.1f, 0.1f});
    vector(ffn + "x_k", 0, 1);
    matrix(ffn + "key.weight", wide, embd);
    matrix(ffn + "value.weight", embd, wide);
  }
  void layer_norm(const std::string& name) {
    tensors_.push_back({name + ".weight", {dims_.embd}, 0.5f, 1});
    tensors_.push_back({name + ".bias", {dims_.embd}, -0.1f, 0.1f});
  }
  void vector(const std::string& name, float low, float high) {
    tensors_.push_back({name, {1, 1, dims_.embd}, low, high});
  }
  // Sums over `embd` products of such weights stay near 1.
  void matrix(const std::string& name, std::int64_t rows, std::int64_t columns) {
    const float bound = 1 / std::sqrt(static_cast<float>(dims_.embd));
    tensors_.push_back({name, {rows, columns}, -bound, bound});
  }
  void low_rank(const std::string& name, std::int64_t rank, float low, float high) {
    vector(name + '0', low, high);
    matrix(name + '1', dims_.embd, rank);
    matrix(name + '2', rank, dims_.embd);
  }

  kernels::rwkv7_dims dims_;
  std::vector<random_tensor> tensors_;
};

// xorshift64*, as speed matters more than quality here
class random_bits {
 public:
  explicit random_bits(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull | 1) {}
  float between(float low, float high) {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    const auto top = static_cast<float>((state_ * 0x2545f4914f6cdd1dull) >> 40);  // 24 bits
    return low + (high - low) * (top * 0x1p-24f);
  }

 private:
  std::uint64_t state_;
};

}  // namespace

std::optional<kernels::rwkv7_dims> released_dims(std::string_view size) {
  struct released {
    std::string_view name;
    std::uint32_t layers, embd, rank_w, rank_a, rank_v, rank_g;
  };
  constexpr released table[] = {
      {"0.1b", 12, 768, 64, 64, 32, 128},  {"0.4b", 24, 1024, 64, 64, 32, 128},   {"1.5b", 24, 2048, 96, 96, 64, 256},
      {"2.9b", 32, 2560, 96, 96, 64, 320}, {"7.2b", 32, 4096, 128, 128, 96, 480},
  };
  for (const auto& row : table)
    if (row.name == size)
      return kernels::rwkv7_dims{.layers = row.layers,
                                 .embd = row.embd,
                                 .heads = row.embd / 64,
                                 .head_size = 64,
                                 .ffn = 4 * row.embd,
                                 .vocab = 65536,
                                 .rank_w = row.rank_w,
                                 .rank_a = row.rank_a,
                                 .rank_v = row.rank_v,
                                 .rank_g = row.rank_g};
  return std::nullopt;
}

result<void> write_random_model(const std::filesystem::path& path, const kernels::rwkv7_dims& dims,
                                std::uint64_t seed) {
  const tensor_list list(dims);
  std::vector<safetensors_writer::entry> entries;
  for (const auto& tensor : list.tensors()) entries.push_back({tensor.name, dtype::bf16, tensor.shape});
  auto file = safetensors_writer::create(path, entries);
  if (!file) return file.error();

  random_bits bits(seed);
  std::vector<std::uint16_t> piece;
  for (const auto& tensor : list.tensors()) {
    std::int64_t left = 1;
    for (const auto size : tensor.shape) left *= size;
    for (; left > 0; left -= static_cast<std::int64_t>(piece.size())) {
      piece.resize(static_cast<std::size_t>(std::min<std::int64_t>(left, 1 << 20)));
      for (auto& element : piece) element = f32_to_bf16(bits.between(tensor.low, tensor.high));
      file->append(std::as_bytes(std::span(piece)));
    }
  }
  return file->finish();
}

}  // namespace skein::cli
