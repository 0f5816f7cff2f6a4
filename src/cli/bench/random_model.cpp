#include "cli/bench/random_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "cli/safetensors_writer.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace skein::cli {
namespace {

using kernels::tensor_spec;

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

/// Bounds of uniform values.
struct value_range {
  float low, high;
};

/// Tensors of layers that are neither matrices, norms nor mixes of the token shift, with ranges near those of trained
/// weights.
constexpr struct {
  std::string_view name;
  value_range range;
} vector_ranges[] = {
    {"att.w0", {-6, 0}},  // sigmoid of this sets the decay: from slow to fast
    {"att.a0", {-1, 1}},
    {"att.v0", {-1, 1}},
    {"att.k_k", {0.5f, 1}},
    {"att.k_a", {0.5f, 1}},
    {"att.r_k", {-0.1f, 0.1f}},
    {"att.time_decay", {-6, -1}},  // versions 5 and 6: a token leaves exp(-exp(this)) of the state
    {"att.time_faaaa", {-0.2f, 0.8f}},
    {"att.time_first", {-2, -0.5f}},
};
// A token subtracts exp(this) from the exponent: some channels keep hundreds of tokens, some only the newest.
constexpr value_range rwkv4_decay = {-5, 3};

bool is_mix(std::string_view name) {
  return name.find(".x_") != name.npos || name.find(".time_mix_") != name.npos || name.find(".time_maa_") != name.npos;
}

/// Names and shapes of a checkpoint from the version's list of tensors, with a range for each.
class tensor_list {
 public:
  explicit tensor_list(const random_model& of) : version_(of.version), dims_(of.dims), sparse_(of.sparse) {
    switch (version_) {
      case model::rwkv_version::v4: add_model<kernels::rwkv4_layer_of>(); break;
      case model::rwkv_version::v5_1:
      case model::rwkv_version::v5_2: add_model<kernels::rwkv5_layer_of>(); break;
      case model::rwkv_version::v6: add_model<kernels::rwkv6_layer_of>(); break;
      case model::rwkv_version::v7: add_model<kernels::rwkv7_layer_of>(); break;
    }
  }
  [[nodiscard]] const std::vector<random_tensor>& tensors() const { return tensors_; }

 private:
  /// The layers come before the tensors of the output, as in released files.
  template <template <typename> typename Layer>
  void add_model() {
    outer_weights::for_each_tensor([&](const tensor_spec& spec) {
      if (spec.name == "ln_out.weight")
        for (std::uint32_t layer = 0; layer < dims_.layers; ++layer) add_layer<Layer>(layer);
      add(std::string(spec.name), spec);
    });
  }
  template <template <typename> typename Layer>
  void add_layer(std::uint32_t layer) {
    const std::string block = "blocks." + std::to_string(layer) + '.';
    Layer<kernels::checkpoint_views>::for_each_tensor([&](const tensor_spec& spec) {
      if (is_present(spec, layer)) add(block + std::string(spec.name), spec);
    });
  }
  /// Of the optional tensors, a model has those of the released version 5.2: the gate and the bonus itself instead of
  /// its logarithm (time_first). Its initial state is zero.
  static bool is_present(const tensor_spec& spec, std::uint32_t layer) {
    if (spec.when == kernels::presence::after_first) return layer > 0;
    const bool left_out = spec.name == "att.time_first" || spec.name == "att.time_state";
    return spec.when == kernels::presence::always || !left_out;
  }

  void add(std::string name, const tensor_spec& spec) {
    std::vector<std::int64_t> shape;
    for (const kernels::extent e : spec.shape)
      if (e != kernels::extent::none) shape.push_back(value_of(e, dims_));
    // As in released files, where only the vectors of norms have one dimension.
    if (shape.size() == 1 && !is_weight_or_bias(spec)) shape.insert(shape.begin(), 2, 1);
    const value_range range = range_of(spec);
    tensors_.push_back({std::move(name), std::move(shape), range.low, range.high});
  }
  static bool is_weight_or_bias(const tensor_spec& spec) {
    return spec.name.ends_with(".weight") || spec.name.ends_with(".bias");
  }

  [[nodiscard]] value_range range_of(const tensor_spec& spec) const {
    const bool is_vector = spec.shape[1] == kernels::extent::none;
    if (spec.transposed || (!is_vector && is_weight_or_bias(spec))) return matrix_range(spec);
    if (spec.name.ends_with(".weight")) return {0.5f, 1};
    if (spec.name.ends_with(".bias")) {
      const float bias = sparse_ && spec.name == "ln2.bias" ? sparse_bias : 0;
      return {bias - 0.1f, bias + 0.1f};
    }
    if (is_mix(spec.name)) return {0, 1};
    if (version_ == model::rwkv_version::v4 && spec.name == "att.time_decay") return rwkv4_decay;
    const auto* const found = std::ranges::find(vector_ranges, spec.name, [](const auto& row) { return row.name; });
    check(found != std::end(vector_ranges));
    return found->range;
  }
  // Sums over `embd` products of such weights stay near 1.
  [[nodiscard]] value_range matrix_range(const tensor_spec& spec) const {
    const auto embd = static_cast<float>(dims_.embd);
    const float bound = 1 / std::sqrt(embd);
    // A bias in ln2 and weights shifted against it make most keys negative.
    const float middle = sparse_ && spec.name == "ffn.key.weight" ? -sparse_lean / embd : 0;
    return {middle - bound, middle + bound};
  }

  using outer_weights = kernels::outer_weights_of<kernels::checkpoint_views>;

  const model::rwkv_version version_;
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

/// A row of the table of released models. Sizes that the version does not have are 0.
struct released_row {
  std::string_view name;
  model::rwkv_version version;
  std::uint32_t layers, embd, rank_w = 0, rank_a = 0, rank_v = 0, rank_g = 0, rank_x = 0;
};

constexpr std::string_view default_prefix = "v7-";

// The ranks of 13.3b follow from its 13,269,245,952 parameters except for how w, a and g share theirs.
constexpr auto released_rows = [] {
  using enum model::rwkv_version;
  return std::to_array<released_row>({
      {"v7-0.1b", v7, 12, 768, 64, 64, 32, 128},
      {"v7-0.4b", v7, 24, 1024, 64, 64, 32, 128},
      {"v7-1.5b", v7, 24, 2048, 96, 96, 64, 256},
      {"v7-2.9b", v7, 32, 2560, 96, 96, 64, 320},
      {"v7-7.2b", v7, 32, 4096, 128, 128, 96, 480},
      {"v7-13.3b", v7, 61, 4096, 192, 192, 128, 384},
      {"v6-1.6b", v6, 24, 2048, 64, 0, 0, 0, 32},
      {"v6-3b", v6, 32, 2560, 64, 0, 0, 0, 32},
      {"v6-7b", v6, 32, 4096, 128, 0, 0, 0, 64},
      {"v6-14b", v6, 61, 4096, 128, 0, 0, 0, 64},
      {"v5-1.6b", v5_2, 24, 2048},
      {"v5-3b", v5_2, 32, 2560},
      {"v5-7b", v5_2, 32, 4096},
      {"v4-0.17b", v4, 12, 768},
      {"v4-0.4b", v4, 24, 1024},
      {"v4-1.5b", v4, 24, 2048},
      {"v4-3b", v4, 32, 2560},
      {"v4-7b", v4, 32, 4096},
      {"v4-14b", v4, 40, 5120},
  });
}();

kernels::model_dims dims_of_row(const released_row& row) {
  using enum model::rwkv_version;
  constexpr std::uint32_t head_size = 64;
  const bool wide = row.version == v4 || row.version == v7;
  const std::uint32_t heads = row.version == v4 ? 0 : row.embd / head_size;
  return {.layers = row.layers,
          .embd = row.embd,
          .heads = heads,
          .head_size = heads == 0 ? 0 : head_size,
          .ffn = wide ? 4 * row.embd : row.embd * 7 / 2 / 32 * 32,
          .vocab = 65536,
          .rank_w = row.rank_w,
          .rank_a = row.rank_a,
          .rank_v = row.rank_v,
          .rank_g = row.rank_g,
          .rank_x = row.rank_x,
          .decays = row.version == v5_2 ? head_size : 0};
}

/// The name as lists show it.
std::string_view short_name(const released_row& row) {
  const bool is_default = row.name.starts_with(default_prefix);
  return is_default ? row.name.substr(default_prefix.size()) : row.name;
}

}  // namespace

std::optional<released_model> find_released(std::string_view size) {
  for (const auto& row : released_rows)
    if (size == row.name || size == short_name(row)) return released_model{row.version, dims_of_row(row)};
  return std::nullopt;
}

std::string released_sizes() {
  std::string names;
  for (const auto& row : released_rows) names.append(names.empty() ? "" : ", ").append(short_name(row));
  return names;
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
