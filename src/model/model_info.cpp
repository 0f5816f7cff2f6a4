#include "model/model_info.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "model/files/checkpoint_limits.hpp"
#include "model/files/file_bytes.hpp"
#include "model/stated_sizes.hpp"
#include "model/tensor_lookup.hpp"

namespace skein::model {
namespace {

// Far above any released model; everything computed from sizes within these limits fits 64 bits.
constexpr std::uint32_t max_layers = 1024, max_width = 65536, max_ffn = 1u << 20, max_vocab = 1u << 20,
                        max_rank = 65536, max_heads = 4096, max_head_size = 1024;

/// Reads sizes from tensor shapes. Keeps the first fault; after it all sizes are 0.
class survey {
 public:
  explicit survey(const checkpoint& file) : file_(file) {}

  /// Dimension `which` of a tensor with two dimensions.
  std::uint32_t of_matrix(const std::string& name, std::size_t which, std::uint32_t most) {
    return size(name, which, most, 2, 2);
  }
  /// The first dimension of a tensor with one or more dimensions.
  std::uint32_t first_of(const std::string& name, std::uint32_t most) { return size(name, 0, most, 1, max_dimensions); }
  void require_shape(const std::string& name, std::initializer_list<std::int64_t> shape) {
    if (auto found = find_shaped(file_, name, {shape.begin(), shape.size()}, true); !found) keep(found.error());
  }
  void require(bool fact, std::string_view name, const std::string& otherwise) {
    if (!fact) keep(misfit(file_, name, otherwise));
  }
  [[nodiscard]] const std::optional<error>& fault() const { return fault_; }

 private:
  std::uint32_t size(const std::string& name, std::size_t which, std::uint32_t most, std::size_t least_dimensions,
                     std::size_t most_dimensions) {
    const auto found = find_required(file_, name);
    if (!found) return keep(found.error());
    const auto& shape = (*found)->shape;
    if (shape.size() < least_dimensions || shape.size() > most_dimensions)
      return keep(misfit(file_, name, "has shape " + shape_text(shape) + ", a matrix is expected"));
    if (shape[which] > most)
      return keep(misfit(file_, name,
                         "has shape " + shape_text(shape) + "; dimension " + std::to_string(which) + " may be " +
                             std::to_string(most) + " at most"));
    return fault_ ? 0 : static_cast<std::uint32_t>(shape[which]);
  }
  std::uint32_t keep(error fault) {
    if (!fault_) fault_ = std::move(fault);
    return 0;
  }

  const checkpoint& file_;
  std::optional<error> fault_;
};

/// One more than the largest N of the names blocks.N.*; nullopt if a number is too large.
std::optional<std::uint32_t> count_layers(const checkpoint& file) {
  constexpr std::string_view prefix = "blocks.";
  std::uint32_t layers = 0;
  for (const auto& tensor : file.tensors()) {
    if (!tensor.name.starts_with(prefix)) continue;
    std::uint32_t layer = 0;
    const char* const end = tensor.name.data() + tensor.name.size();
    const auto parsed = std::from_chars(tensor.name.data() + prefix.size(), end, layer);
    if (parsed.ec == std::errc::invalid_argument) continue;
    if (parsed.ec != std::errc() || layer >= max_layers) return std::nullopt;
    layers = std::max(layers, layer + 1);
  }
  return layers;
}

/// Of an adapter that was not merged: the other weights alone are not the trained model.
bool is_of_adapter(std::string_view name) {
  constexpr std::string_view parts[] = {".lora_", ".lora.0", ".bone", ".disha", ".miss_block"};
  return name.starts_with("lora_") ||
         std::ranges::any_of(parts, [&](std::string_view part) { return name.find(part) != name.npos; });
}

/// Without a name of an RWKV model, the first of all missing tensors would say nothing about the file.
std::optional<error> unknown_names(const checkpoint& file) {
  const auto is_known = [](const auto& t) { return t.name == "emb.weight" || t.name.starts_with("blocks."); };
  if (file.tensors().empty() || std::ranges::any_of(file.tensors(), is_known)) return std::nullopt;
  return error{error_kind::unsupported,
               file.path().string() + ": the names of its tensors, such as " + printable(file.tensors().front().name) +
                   ", are those of no known form of RWKV models",
               {}};
}

rwkv_version version_of(const checkpoint& file) {
  // Two names each, so that a file without one of them is not taken for an older version.
  const auto has = [&](std::string_view name) { return file.find(block_name(0, name)) != nullptr; };
  if (has("att.r_k") || has("att.x_r")) return rwkv_version::v7;
  if (has("att.time_maa_x") || has("att.time_maa_w1")) return rwkv_version::v6;
  if (!file.find(block_name(0, "att.ln_x.weight"))) return rwkv_version::v4;
  const tensor_view* decay = file.find(block_name(0, "att.time_decay"));  // (H, N), or (H) and (H, 1, 1)
  return decay && decay->shape.size() > 1 && decay->shape[1] > 1 ? rwkv_version::v5_2 : rwkv_version::v5_1;
}

/// The tensor whose first dimension is the number of heads.
std::string heads_tensor(rwkv_version version) {
  if (version == rwkv_version::v7) return block_name(0, "att.r_k");
  return block_name(0, version == rwkv_version::v6 ? "att.time_faaaa" : "att.time_decay");
}

void survey_heads(survey& sizes, model_info& info) {
  const std::string name = heads_tensor(info.version);
  info.heads =
      info.version == rwkv_version::v5_1 ? sizes.first_of(name, max_heads) : sizes.of_matrix(name, 0, max_heads);
  if (info.heads == 0) return;
  info.head_size = info.att / info.heads;
  sizes.require(info.head_size >= 1 && info.head_size <= max_head_size && info.heads * info.head_size == info.att, name,
                "gives " + std::to_string(info.heads) + " heads, which does not divide the attention width " +
                    std::to_string(info.att));
  if (info.version != rwkv_version::v5_1) sizes.require_shape(name, {info.heads, info.head_size});
}

void survey_ranks(survey& sizes, model_info& info) {
  if (info.version == rwkv_version::v6) {
    const std::uint32_t inner = sizes.of_matrix(block_name(0, "att.time_maa_w1"), 1, 5 * max_rank);
    info.rank_x = inner / 5;
    sizes.require(inner == 5 * info.rank_x && (inner > 0 || sizes.fault()), block_name(0, "att.time_maa_w1"),
                  "has " + std::to_string(inner) + " inner values, which is not a multiple of 5");
    info.rank_w = sizes.of_matrix(block_name(0, "att.time_decay_w1"), 1, max_rank);
    return;
  }
  info.rank_w = sizes.of_matrix(block_name(0, "att.w1"), 1, max_rank);
  info.rank_a = sizes.of_matrix(block_name(0, "att.a1"), 1, max_rank);
  info.rank_g = sizes.of_matrix(block_name(0, "att.g1"), 1, max_rank);
  if (info.layers > 1) info.rank_v = sizes.of_matrix(block_name(1, "att.v1"), 1, max_rank);  // layer 0 has none
}

/// Research variants, and files that hold tensors of two versions.
std::optional<error> foreign_tensor(const checkpoint& file, rwkv_version version) {
  constexpr rwkv_version versions[] = {rwkv_version::v4, rwkv_version::v5_2, rwkv_version::v6, rwkv_version::v7};
  const bool five = version == rwkv_version::v5_1 || version == rwkv_version::v5_2;
  for (const auto& tensor : file.tensors()) {
    if (!tensor.name.starts_with("blocks.")) continue;
    const std::size_t dot = tensor.name.find('.', sizeof "blocks." - 1);
    if (dot == std::string::npos) continue;
    const std::string_view name = std::string_view(tensor.name).substr(dot + 1);
    const char* const variant = name.starts_with("ffn.s_emb") ? "7a (DeepEmbed)"
                                : name.starts_with("qkv.")    ? "7b"
                                : name.starts_with("ffn.enn") ? "8"
                                                              : nullptr;
    if (variant)
      return error{error_kind::unsupported,
                   file.path().string() + ": tensor " + printable(tensor.name) +
                       " belongs to the research variant RWKV-" + variant + ", which is not supported",
                   {}};
    if (has_layer_tensor(version, name)) continue;
    for (const rwkv_version other : versions)
      if (has_layer_tensor(other, name))
        return misfit(file, tensor.name,
                      "belongs to RWKV-" + std::string(other == rwkv_version::v5_2 ? "5" : to_string(other)) +
                          ", but the other tensors are those of RWKV-" + std::string(five ? "5" : to_string(version)));
  }
  return std::nullopt;
}

/// From all tensors together: parameters, the most frequent element type, and whether there is an initial state.
void summarise(const checkpoint& file, model_info& info) {
  std::array<std::uint64_t, 8> matrix_elements{};
  for (const auto& [name, view, digest, stored] : file.tensors()) {
    if (name.ends_with(".att.time_state")) {
      info.has_time_state = true;
      continue;
    }
    const auto elements = static_cast<std::uint64_t>(view.elements());
    info.parameters += elements;
    if (std::ranges::count_if(view.shape, [](std::int64_t d) { return d > 1; }) > 1)
      matrix_elements[static_cast<std::size_t>(view.type)] += elements;
  }
  info.matrix_type = static_cast<dtype>(std::ranges::max_element(matrix_elements) - matrix_elements.begin());
}

}  // namespace

std::string_view to_string(rwkv_version v) {
  switch (v) {
    case rwkv_version::v4: return "4";
    case rwkv_version::v5_1: return "5.1";
    case rwkv_version::v5_2: return "5.2";
    case rwkv_version::v6: return "6";
    case rwkv_version::v7: return "7";
  }
  return "?";
}

result<model_info> describe(const checkpoint& file) {
  for (const auto& tensor : file.tensors())
    if (is_of_adapter(tensor.name))
      return misfit(
          file, tensor.name,
          "belongs to an adapter, which is no model: pass it with --adapter beside its model; a file with both "
          "must be merged first");
  const auto is_state = [](const auto& t) { return t.name.ends_with(".att.time_state"); };
  if (!file.tensors().empty() && std::ranges::all_of(file.tensors(), is_state))
    return misfit(file, file.tensors().front().name,
                  "is a tuned state, not a model; --states-dir names the folder of tuned states");
  if (auto unknown = unknown_names(file)) return *unknown;
  const rwkv_version version = version_of(file);
  if (auto foreign = foreign_tensor(file, version)) return *foreign;
  survey sizes(file);
  model_info info;
  info.version = version;
  info.vocab = sizes.of_matrix("emb.weight", 0, max_vocab);
  info.embd = sizes.of_matrix("emb.weight", 1, max_width);
  info.att = sizes.of_matrix(block_name(0, "att.key.weight"), 0, max_width);
  info.ffn = sizes.of_matrix(block_name(0, "ffn.key.weight"), 0, max_ffn);
  const auto layers = count_layers(file);
  if (!layers) return misfit(file, "blocks.*", "numbers go beyond " + std::to_string(max_layers) + " layers");
  info.layers = *layers;

  if (!sizes.fault() && info.version != rwkv_version::v4) survey_heads(sizes, info);
  if (info.version == rwkv_version::v4) sizes.require_shape(block_name(0, "att.time_first"), {info.att});
  if (info.version == rwkv_version::v7 || info.version == rwkv_version::v6) survey_ranks(sizes, info);
  if (info.version == rwkv_version::v7 || info.version == rwkv_version::v4)
    sizes.require_shape(block_name(0, "att.key.weight"), {info.embd, info.embd});
  if (info.version == rwkv_version::v5_1) info.decays = 1;
  if (info.version == rwkv_version::v5_2) info.decays = info.head_size;
  sizes.require_shape("head.weight", {info.vocab, info.embd});
  for (std::uint32_t layer = 0; layer < info.layers && !sizes.fault(); ++layer) {
    sizes.require_shape(block_name(layer, "att.key.weight"), {info.att, info.embd});
    sizes.require_shape(block_name(layer, "ffn.key.weight"), {info.ffn, info.embd});
  }
  if (sizes.fault()) return *sizes.fault();

  summarise(file, info);
  info.state = {info.layers, info.embd, info.heads, info.head_size};
  if (info.version == rwkv_version::v4) info.state.channels = info.att;
  if (auto fault = stated_size_fault(file, info)) return *fault;
  return info;
}

kernels::model_dims model_info::dims() const {
  return {.layers = layers,
          .embd = embd,
          .heads = heads,
          .head_size = head_size,
          .ffn = ffn,
          .vocab = vocab,
          .rank_w = rank_w,
          .rank_a = rank_a,
          .rank_v = rank_v,
          .rank_g = rank_g,
          .rank_x = rank_x,
          .decays = decays};
}

}  // namespace skein::model
