#include "model/forms/fla_6.hpp"

#include <cstring>

#include "model/forms/renaming.hpp"

namespace skein::model {
namespace {

constexpr rename_rule fla_6_outer[] = {
    {"model.embeddings.weight", "emb.weight"},
    {"model.layers.0.pre_norm.*", "blocks.0.ln0."},
    {"model.norm.*", "ln_out."},
    {"lm_head.weight", "head.weight"},
};
constexpr rename_rule fla_6_layer[] = {
    {"attn_norm.*", "ln1."},
    {"ffn_norm.*", "ln2."},
    {"attn.x_proj.0.mu", "att.time_maa_x", change::vector},
    {"attn.x_bias", "att.time_maa_r att.time_maa_w att.time_maa_k att.time_maa_v att.time_maa_g", change::rows},
    {"attn.x_proj.0.linear.weight", "att.time_maa_w1", change::transpose},
    {"attn.x_proj.2.weight", "att.time_maa_w2"},
    {"attn.w_proj.linear.lora.0.weight", "att.time_decay_w1", change::transpose},
    {"attn.w_proj.linear.lora.2.weight", "att.time_decay_w2", change::transpose},
    {"attn.w_proj.linear.lora.2.bias", "att.time_decay", change::vector},
    {"attn.bonus", "att.time_faaaa"},
    {"attn.r_proj.linear.weight", "att.receptance.weight"},
    {"attn.k_proj.linear.weight", "att.key.weight"},
    {"attn.v_proj.linear.weight", "att.value.weight"},
    {"attn.g_proj.linear.weight", "att.gate.weight"},
    {"attn.o_proj.weight", "att.output.weight"},
    {"attn.g_norm.*", "att.ln_x."},
    {"ffn.key.mu", "ffn.time_maa_k", change::vector},
    {"ffn.key.linear.weight", "ffn.key.weight"},
    {"ffn.value.weight", "ffn.value.weight"},
    {"ffn.receptance.mu", "ffn.time_maa_r", change::vector},
    {"ffn.receptance.linear.weight", "ffn.receptance.weight"},
};
constexpr naming fla_6_names{"Hugging Face, fla, RWKV-6", "model.layers.", fla_6_outer, fla_6_layer};

constexpr std::size_t pairs = 5;
/// The original order is w, k, v, r, g; fla's is r, w, k, v, g.
constexpr std::size_t place_in_fla[pairs] = {1, 2, 3, 0, 4};

/// A copy of a row-major matrix whose `bytes` of each row, or of the whole matrix, are five parts in another order.
const std::byte* reordered(found_model& found, const tensor_view& view, std::size_t rows, std::size_t row_bytes) {
  std::byte* const copy = found.own(rows * row_bytes);
  const std::size_t part = row_bytes / pairs;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t p = 0; p < pairs; ++p)
      std::memcpy(copy + r * row_bytes + p * part, view.data + r * row_bytes + place_in_fla[p] * part, part);
  return copy;
}

/// att.time_maa_w1 as (D, 5 e), the transpose of five matrices (e, D) in a row.
result<void> reorder_first(found_model& found, found_tensor& tensor) {
  tensor_view& view = tensor.view;
  tensor_view stored = view;  // as in the file: (5 e, D)
  std::swap(stored.shape[0], stored.shape[1]);
  std::swap(stored.stride[0], stored.stride[1]);
  if (stored.shape.size() != 2 || !stored.row_major() || stored.shape[0] % std::int64_t{pairs} != 0)
    return tensor_fault(found, tensor, "does not consist of five matrices");
  const auto bytes = static_cast<std::size_t>(view.elements()) * dtype_bytes(view.type);
  view.data = reordered(found, stored, 1, bytes);
  return {};
}

/// att.time_maa_w2 as (5, e, D), from (D, 5 e).
result<void> reorder_second(found_model& found, found_tensor& tensor) {
  tensor_view& view = tensor.view;
  if (view.shape.size() != 2 || !view.row_major() || view.shape[1] % std::int64_t{pairs} != 0)
    return tensor_fault(found, tensor, "does not consist of five matrices");
  const std::int64_t width = view.shape[0], inner = view.shape[1], rank = inner / std::int64_t{pairs};
  const auto row_bytes = static_cast<std::size_t>(inner) * dtype_bytes(view.type);
  view = {reordered(found, view, static_cast<std::size_t>(width), row_bytes),
          view.type,
          {std::int64_t{pairs}, rank, width},
          {rank, 1, inner}};
  return {};
}

}  // namespace

result<void> from_fla_6(found_model& found) {
  if (const auto renamed = rename(found, fla_6_names); !renamed) return renamed;
  change_notes notes;
  for (auto& tensor : found.tensors) {
    const bool first = tensor.name.ends_with(".att.time_maa_w1");
    if (!first && !tensor.name.ends_with(".att.time_maa_w2")) continue;
    const auto done = first ? reorder_first(found, tensor) : reorder_second(found, tensor);
    if (!done) return done;
    notes.add("reordered:", first ? "att.time_maa_w1" : "att.time_maa_w2");
  }
  notes.write(found);
  return {};
}

}  // namespace skein::model
