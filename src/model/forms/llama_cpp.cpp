#include "model/forms/llama_cpp.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "model/forms/views.hpp"

namespace skein::model {
namespace {

enum class llama_cpp_change : std::uint8_t {
  none,
  row,         ///< (n) -> (1, 1, n)
  transposed,  ///< the last two dimensions swapped
  heads,       ///< (H N) -> (H, N)
  rescaled,    ///< multiplied by the power of two that the converter divided by
};

struct llama_cpp_rule {
  std::string_view here, original;
  llama_cpp_change how = llama_cpp_change::none;
};

constexpr llama_cpp_rule outer_rules[] = {{"token_embd.weight", "emb.weight"},
                                          {"output.weight", "head.weight"},
                                          {"token_embd_norm.weight", "blocks.0.ln0.weight"},
                                          {"token_embd_norm.bias", "blocks.0.ln0.bias"},
                                          {"output_norm.weight", "ln_out.weight"},
                                          {"output_norm.bias", "ln_out.bias"}};

constexpr llama_cpp_rule rwkv7_rules[] = {{"attn_norm.weight", "ln1.weight"},
                                          {"attn_norm.bias", "ln1.bias"},
                                          {"attn_norm_2.weight", "ln2.weight"},
                                          {"attn_norm_2.bias", "ln2.bias"},
                                          {"time_mix_w0.weight", "att.w0", llama_cpp_change::row},
                                          {"time_mix_w1.weight", "att.w1", llama_cpp_change::transposed},
                                          {"time_mix_w2.weight", "att.w2", llama_cpp_change::transposed},
                                          {"time_mix_a0.weight", "att.a0", llama_cpp_change::row},
                                          {"time_mix_a1.weight", "att.a1", llama_cpp_change::transposed},
                                          {"time_mix_a2.weight", "att.a2", llama_cpp_change::transposed},
                                          {"time_mix_v0.weight", "att.v0", llama_cpp_change::row},
                                          {"time_mix_v1.weight", "att.v1", llama_cpp_change::transposed},
                                          {"time_mix_v2.weight", "att.v2", llama_cpp_change::transposed},
                                          {"time_mix_g1.weight", "att.g1", llama_cpp_change::transposed},
                                          {"time_mix_g2.weight", "att.g2", llama_cpp_change::transposed},
                                          {"time_mix_k_k.weight", "att.k_k", llama_cpp_change::row},
                                          {"time_mix_k_a.weight", "att.k_a", llama_cpp_change::row},
                                          {"time_mix_r_k.weight", "att.r_k", llama_cpp_change::heads},
                                          {"time_mix_receptance.weight", "att.receptance.weight"},
                                          {"time_mix_key.weight", "att.key.weight"},
                                          {"time_mix_value.weight", "att.value.weight"},
                                          {"time_mix_output.weight", "att.output.weight"},
                                          {"time_mix_ln.weight", "att.ln_x.weight"},
                                          {"time_mix_ln.bias", "att.ln_x.bias"},
                                          {"channel_mix_lerp_k.weight", "ffn.x_k", llama_cpp_change::row},
                                          {"channel_mix_key.weight", "ffn.key.weight"},
                                          {"channel_mix_value.weight", "ffn.value.weight"}};

constexpr llama_cpp_rule rwkv6_rules[] = {
    {"attn_norm.weight", "ln1.weight"},
    {"attn_norm.bias", "ln1.bias"},
    {"attn_norm_2.weight", "ln2.weight"},
    {"attn_norm_2.bias", "ln2.bias"},
    {"time_mix_lerp_x.weight", "att.time_maa_x", llama_cpp_change::row},
    {"time_mix_lerp_w.weight", "att.time_maa_w", llama_cpp_change::row},
    {"time_mix_lerp_k.weight", "att.time_maa_k", llama_cpp_change::row},
    {"time_mix_lerp_v.weight", "att.time_maa_v", llama_cpp_change::row},
    {"time_mix_lerp_r.weight", "att.time_maa_r", llama_cpp_change::row},
    {"time_mix_lerp_g.weight", "att.time_maa_g", llama_cpp_change::row},
    {"time_mix_w1.weight", "att.time_maa_w1", llama_cpp_change::transposed},
    {"time_mix_w2.weight", "att.time_maa_w2", llama_cpp_change::transposed},
    {"time_mix_decay.weight", "att.time_decay", llama_cpp_change::row},
    {"time_mix_decay_w1.weight", "att.time_decay_w1", llama_cpp_change::transposed},
    {"time_mix_decay_w2.weight", "att.time_decay_w2", llama_cpp_change::transposed},
    {"time_mix_first.weight", "att.time_faaaa", llama_cpp_change::heads},
    {"time_mix_receptance.weight", "att.receptance.weight"},
    {"time_mix_key.weight", "att.key.weight"},
    {"time_mix_value.weight", "att.value.weight"},
    {"time_mix_gate.weight", "att.gate.weight"},
    {"time_mix_output.weight", "att.output.weight", llama_cpp_change::rescaled},
    {"time_mix_ln.weight", "att.ln_x.weight"},
    {"time_mix_ln.bias", "att.ln_x.bias"},
    {"channel_mix_lerp_k.weight", "ffn.time_maa_k", llama_cpp_change::row},
    {"channel_mix_lerp_r.weight", "ffn.time_maa_r", llama_cpp_change::row},
    {"channel_mix_key.weight", "ffn.key.weight"},
    {"channel_mix_receptance.weight", "ffn.receptance.weight"},
    {"channel_mix_value.weight", "ffn.value.weight", llama_cpp_change::rescaled}};

// The rows of time_mix_lerp_fused.weight.
constexpr std::string_view fused_name = "time_mix_lerp_fused.weight";
constexpr std::string_view rwkv7_fused[] = {"att.x_r", "att.x_w", "att.x_k", "att.x_v", "att.x_a", "att.x_g"};
constexpr std::string_view rwkv6_fused[] = {"att.time_maa_w", "att.time_maa_k", "att.time_maa_v", "att.time_maa_r",
                                            "att.time_maa_g"};

/// Copies of a0, a1 and a2 in layer 0, where the model has no such tensors.
bool is_dummy(std::string_view name) {
  return name == "time_mix_v0.weight" || name == "time_mix_v1.weight" || name == "time_mix_v2.weight";
}

struct layer_name {
  std::uint32_t layer;
  std::string_view rest;
};

/// "blk.<layer>.<rest>".
std::optional<layer_name> split_layer(std::string_view name) {
  constexpr std::string_view prefix = "blk.";
  if (!name.starts_with(prefix)) return std::nullopt;
  std::uint32_t layer = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, trouble] = std::from_chars(name.data() + prefix.size(), end, layer);
  if (trouble != std::errc() || rest == end || *rest != '.') return std::nullopt;
  return layer_name{layer, std::string_view(rest + 1, static_cast<std::size_t>(end - rest - 1))};
}

/// Converts all tensors of one file; the first fault ends it.
class llama_cpp_names {
 public:
  llama_cpp_names(found_model& found, const llama_cpp_facts& facts)
      : found_(found), facts_(facts), seven_(facts.architecture == "rwkv7") {}

  result<void> run() {
    std::vector<found_tensor> tensors = std::exchange(found_.tensors, {});
    for (auto& tensor : tensors)
      if (auto taken = take(std::move(tensor)); !taken) return taken.error();
    return check_sizes();
  }

 private:
  result<void> take(found_tensor tensor) {
    const std::string name = tensor.name;
    const auto in_layer = split_layer(name);
    if (!in_layer) {
      if (const llama_cpp_rule* const found = rule_of(outer_rules, name)) return keep(std::move(tensor), *found, "", 0);
      return fault(tensor, "is unknown in architecture " + facts_.architecture);
    }
    layers_ = std::max(layers_, std::uint64_t{in_layer->layer} + 1);
    const std::string before = "blocks." + std::to_string(in_layer->layer) + '.';
    if (in_layer->rest == fused_name)
      return seven_ ? split(tensor, before, rwkv7_fused) : split(tensor, before, rwkv6_fused);
    if (seven_ && in_layer->layer == 0 && is_dummy(in_layer->rest)) return {};
    const llama_cpp_rule* const found =
        seven_ ? rule_of(rwkv7_rules, in_layer->rest) : rule_of(rwkv6_rules, in_layer->rest);
    if (!found) return fault(tensor, "is unknown in architecture " + facts_.architecture);
    return keep(std::move(tensor), *found, before, in_layer->layer);
  }

  static const llama_cpp_rule* rule_of(std::span<const llama_cpp_rule> rules, std::string_view name) {
    const auto found = std::ranges::find(rules, name, &llama_cpp_rule::here);
    return found == rules.end() ? nullptr : &*found;
  }

  result<void> keep(found_tensor tensor, const llama_cpp_rule& found, const std::string& before, std::uint32_t layer) {
    tensor_view& view = tensor.view;
    switch (found.how) {
      case llama_cpp_change::none: break;
      case llama_cpp_change::row: set_row_major(view, {1, 1, view.elements()}); break;
      case llama_cpp_change::transposed:
        if (!swap_last_axes(view)) return fault(tensor, "has one dimension; a matrix is expected");
        break;
      case llama_cpp_change::heads:
        if (!into_heads(view))
          return fault(tensor, "has " + std::to_string(view.elements()) +
                                   " elements, which is not a multiple of the head size (" + facts_.architecture +
                                   ".wkv.head_size)");
        break;
      case llama_cpp_change::rescaled: rescale(tensor, layer); break;
    }
    tensor.name = before + std::string(found.original);
    found_.tensors.push_back(std::move(tensor));
    return {};
  }

  bool into_heads(tensor_view& view) const {
    const std::int64_t elements = view.elements();
    const std::uint64_t size = facts_.head_size.value_or(0);
    if (size == 0 || size > static_cast<std::uint64_t>(elements)) return false;
    const auto head_size = static_cast<std::int64_t>(size);
    if (elements % head_size != 0) return false;
    set_row_major(view, {elements / head_size, head_size});
    return true;
  }

  result<void> split(const found_tensor& fused, const std::string& before, std::span<const std::string_view> names) {
    const auto rows = static_cast<std::int64_t>(names.size());
    if (fused.view.shape.size() < 2 || fused.view.shape.front() != rows)
      return fault(fused, "has not the " + std::to_string(rows) + " rows of architecture " + facts_.architecture);
    for (std::size_t i = 0; i < names.size(); ++i)
      found_.tensors.push_back(row_of(fused, i, names.size(), before + std::string(names[i])));
    return {};
  }

  /// Replaces the data by a multiplied copy. Multiplying by a power of two rounds nothing.
  void rescale(found_tensor& tensor, std::uint32_t layer) {
    if (facts_.rescale_every_n_layers == 0) return;
    const std::uint64_t power = layer / facts_.rescale_every_n_layers;
    if (power == 0) return;
    const float factor = std::ldexp(1.0f, static_cast<int>(std::min<std::uint64_t>(power, 127)));
    tensor_view& view = tensor.view;
    const auto count = static_cast<std::size_t>(view.elements());
    const std::size_t bytes = dtype_bytes(view.type);
    std::byte* const out = found_.own(count * bytes);
    for (std::size_t i = 0; i < count; ++i) multiply(view.data + i * bytes, view.type, factor, out + i * bytes);
    view.data = out;
    view.blocks.factor *= factor;
    multiplied_ = true;
  }

  static void multiply(const std::byte* from, dtype type, float factor, std::byte* to) {
    if (type == dtype::f32) {
      float value;
      std::memcpy(&value, from, sizeof value);
      value *= factor;
      std::memcpy(to, &value, sizeof value);
      return;
    }
    std::uint16_t bits;
    std::memcpy(&bits, from, sizeof bits);
    bits = type == dtype::bf16 ? f32_to_bf16(bf16_to_f32(bits) * factor) : f32_to_f16(f16_to_f32(bits) * factor);
    std::memcpy(to, &bits, sizeof bits);
  }

  /// What the keys say against what the tensors are: a file that was cut by layers, or edited, is noticed here.
  result<void> check_sizes() {
    found_.notes.push_back("low-rank factors transposed, token shifts split" +
                           std::string(multiplied_ ? ", rescaled matrices multiplied back" : ""));
    const auto extent = [&](std::string_view name, std::size_t which) -> std::optional<std::uint64_t> {
      const auto found = std::ranges::find(found_.tensors, name, &found_tensor::name);
      if (found == found_.tensors.end() || found->view.shape.size() <= which) return std::nullopt;
      return static_cast<std::uint64_t>(found->view.shape[which]);
    };
    const std::pair<std::string_view, std::pair<std::optional<std::uint64_t>, std::optional<std::uint64_t>>> sizes[] = {
        {"block_count", {facts_.layers, layers_}},
        {"embedding_length", {facts_.embd, extent("emb.weight", 1)}},
        {"feed_forward_length", {facts_.ffn, extent("blocks.0.ffn.key.weight", 0)}}};
    for (const auto& [key, size] : sizes)
      if (size.first && size.second && *size.first != *size.second)
        return damaged(0, facts_.architecture + '.' + std::string(key) + " is " + std::to_string(*size.first) +
                              ", the tensors have " + std::to_string(*size.second));
    return {};
  }

  [[nodiscard]] static error fault(const found_tensor& tensor, const std::string& what) {
    return damaged(tensor.described_at, "tensor " + printable(tensor.name) + ' ' + what);
  }

  found_model& found_;
  const llama_cpp_facts& facts_;
  const bool seven_;
  std::uint64_t layers_ = 0;
  bool multiplied_ = false;
};

}  // namespace

result<void> from_llama_cpp(found_model& found) { return llama_cpp_names(found, *found.llama_cpp).run(); }

}  // namespace skein::model
