#include "cli/bench/random_model.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "cli/safetensors_writer.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace skein::cli {
namespace {

/// A tensor with elements uniform between low and high.
struct random_tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  float low, high;
};

// With the weights below, the keys of a feed-forward over normalized rows have a standard deviation of 0.365. Shifted
// down by 1.175 times that, 12 % of them stay positive.
constexpr float sparse_bias = 0.1f;
constexpr float sparse_lean = 1.175f * 0.365f / sparse_bias;

/// Names and shapes of a released RWKV-7 checkpoint, with ranges near those of trained weights.
class tensor_list {
 public:
  explicit tensor_list(const random_model& of) : dims_(of.dims), sparse_(of.sparse) {
    const auto& dims = dims_;
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
    const float towards = sparse_ ? sparse_bias : 0;
    layer_norm(block + "ln2", towards);
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
    // A bias in ln2 and weights shifted against it make most keys negative.
    matrix(ffn + "key.weight", wide, embd, sparse_ ? -sparse_lean / static_cast<float>(embd) : 0);
    matrix(ffn + "value.weight", embd, wide);
  }
  void layer_norm(const std::string& name, float bias = 0) {
    tensors_.push_back({name + ".weight", {dims_.embd}, 0.5f, 1});
    tensors_.push_back({name + ".bias", {dims_.embd}, bias - 0.1f, bias + 0.1f});
  }
  void vector(const std::string& name, float low, float high) {
    tensors_.push_back({name, {1, 1, dims_.embd}, low, high});
  }
  // Sums over `embd` products of such weights stay near 1.
  void matrix(const std::string& name, std::int64_t rows, std::int64_t columns, float middle = 0) {
    const float bound = 1 / std::sqrt(static_cast<float>(dims_.embd));
    tensors_.push_back({name, {rows, columns}, middle - bound, middle + bound});
  }
  void low_rank(const std::string& name, std::int64_t rank, float low, float high) {
    vector(name + '0', low, high);
    matrix(name + '1', dims_.embd, rank);
    matrix(name + '2', rank, dims_.embd);
  }

  const kernels::model_dims dims_;
  const bool sparse_;
  std::vector<random_tensor> tensors_;
};

constexpr std::size_t piece_elements = std::size_t{1} << 20;

/// Part of a tensor, which one thread writes.
struct piece {
  const random_tensor* tensor;
  std::uint64_t first_byte;  ///< offset in the data of all tensors
  std::size_t elements;
};

std::vector<piece> cut(const std::vector<random_tensor>& tensors) {
  std::vector<piece> pieces;
  std::uint64_t offset = 0;
  for (const auto& tensor : tensors) {
    std::size_t left = 1;
    for (const auto size : tensor.shape) left *= static_cast<std::size_t>(size);
    while (left > 0) {
      const std::size_t taken = std::min(left, piece_elements);
      pieces.push_back({&tensor, offset, taken});
      offset += taken * sizeof(std::uint16_t);
      left -= taken;
    }
  }
  return pieces;
}

// splitmix64, because speed matters more than quality here: each number gives four elements. Steps are independent, and
// every piece has its own seed, so that any thread may write it.
class random_bits {
 public:
  random_bits(std::uint64_t seed, std::uint64_t piece) : state_(mixed(seed * 0x9e3779b97f4a7c15ull + piece)) {}
  std::uint64_t next() { return mixed(state_ += 0x9e3779b97f4a7c15ull); }

 private:
  static std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }
  std::uint64_t state_;
};

/// 65536 values from low to high in stored form; 16 random bits pick one of them for an element.
std::vector<std::uint16_t> values_between(float low, float high, dtype type) {
  std::vector<std::uint16_t> values(std::size_t{1} << 16);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float value = low + (high - low) * static_cast<float>(i) * 0x1p-16f;
    values[i] = type == dtype::f16 ? f32_to_f16(value) : f32_to_bf16(value);
  }
  return values;
}

/// Tables of values_between by their bounds; a model needs only a few.
class value_tables {
 public:
  value_tables(const std::vector<random_tensor>& tensors, dtype type) {
    for (const auto& tensor : tensors) {
      auto& values = tables_[{tensor.low, tensor.high}];
      if (values.empty()) values = values_between(tensor.low, tensor.high, type);
    }
  }
  [[nodiscard]] const std::vector<std::uint16_t>& of(const random_tensor& tensor) const {
    return tables_.at({tensor.low, tensor.high});
  }

 private:
  std::map<std::pair<float, float>, std::vector<std::uint16_t>> tables_;
};

void fill(std::vector<std::uint16_t>& elements, random_bits bits, const std::vector<std::uint16_t>& values) {
  for (std::size_t i = 0; i < elements.size(); i += 4) {
    const std::uint64_t number = bits.next();
    for (std::size_t k = 0; k < 4 && i + k < elements.size(); ++k)
      elements[i + k] = values[(number >> (16 * k)) & 0xffff];
  }
}

}  // namespace

std::optional<kernels::model_dims> released_dims(std::string_view size) {
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
      return kernels::model_dims{.layers = row.layers,
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

result<void> write_random_model(const std::filesystem::path& path, const random_model& of) {
  const dtype type = of.type;
  check(type == dtype::bf16 || type == dtype::f16);
  const tensor_list list(of);
  std::vector<safetensors_writer::entry> entries;
  for (const auto& tensor : list.tensors()) entries.push_back({tensor.name, type, tensor.shape});
  auto file = safetensors_writer::create(path, entries);
  if (!file) return file.error();

  const value_tables tables(list.tensors(), type);
  const auto pieces = cut(list.tensors());
  kernels::cpu::thread_pool pool(0);
  std::vector<std::vector<std::uint16_t>> scratch(pool.threads());
  pool.run(pieces.size(), [&](std::size_t index, std::uint32_t thread) {
    const piece& each = pieces[index];
    auto& elements = scratch[thread];
    elements.resize(each.elements);
    fill(elements, random_bits(of.seed, index), tables.of(*each.tensor));
    file->write(each.first_byte, std::as_bytes(std::span(elements)));
  });
  return file->finish();
}

}  // namespace skein::cli
