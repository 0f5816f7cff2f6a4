#include "model/forms/original_names.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "model/forms/fla_6.hpp"
#include "model/forms/hugging_face.hpp"
#include "model/forms/llama_cpp.hpp"
#include "model/forms/prefixes.hpp"
#include "model/forms/rwkv_cpp.hpp"
#include "model/forms/views.hpp"
#include "model/forms/web_rwkv.hpp"

namespace skein::model {
namespace {

/// One value for each form; `original` also stands for tuned states and unknown names.
enum class form {
  original,
  fla_7,
  fla_6,
  rwkv_rs_7,
  attention_7,
  hugging_face_6,
  embeddings_7,
  model_embeddings_7,
  web_rwkv
};

form recognise_form(const found_model& found) {
  const auto has = [&](std::string_view name) { return find_tensor(found, name) != nullptr; };
  if (has("model.layers.0.attn.r_proj.weight")) return form::fla_7;
  if (has("model.layers.0.attn.r_proj.linear.weight")) return form::fla_6;
  if (has("model.layers.0.linear_attn.r_proj.weight")) return form::rwkv_rs_7;
  if (has("model.layers.0.attention.receptance.weight") || has("model.layers.0.attention.time_mixer.receptance.weight"))
    return form::attention_7;
  if (has("rwkv.blocks.0.attention.time_maa_x")) return form::hugging_face_6;
  if (has("rwkv7.embeddings.weight")) return form::embeddings_7;
  if (has("model.embeddings.weight") && has("model.blocks.0.att.r_k")) return form::model_embeddings_7;
  if (is_web_rwkv(found)) return form::web_rwkv;
  return form::original;
}

/// Names of models that are known and not read, each with what they belong to.
struct foreign_name {
  std::string_view part;
  std::string_view what;
};
constexpr foreign_name foreign_names[] = {
    {".self_attn.", "a transformer, or a hybrid of a transformer and RWKV"},
    {".attn.q_proj.", "a transformer, or a hybrid of a transformer and RWKV"},
    {".mlp.gate_proj.", "a transformer, or a hybrid of a transformer and RWKV"},
    {".mlp.experts.", "a mixture of experts"},
    {".qweight", "a quantised model"},
    {"rwkv.blocks.0.attention.time_mix_", "a conversion of RWKV-4 or RWKV-5 for Hugging Face"},
    {"rwkv.blocks.0.att.", "a model for embeddings or for images"},
};

result<void> refuse_foreign(const found_model& found) {
  for (const auto& tensor : found.tensors)
    for (const auto& [part, what] : foreign_names)
      if (tensor.name.find(part) != std::string::npos)
        return tensor_fault(found, tensor, "belongs to " + std::string(what) + ", which is not supported",
                            error_kind::unsupported);
  return {};
}

/// Embeddings to which ln0 is already applied cannot be given to a model that applies it: a layer norm has no weights
/// that leave every row as it is.
result<void> require_ln0(const found_model& found) {
  if (find_tensor(found, "blocks.0.ln0.weight")) return {};
  return error{error_kind::unsupported,
               "the model has no blocks.0.ln0.weight: embeddings with the first layer norm already applied "
               "(embedding_layer_norm_fused) are not supported; convert it without",
               {}};
}

constexpr std::string_view vectors[] = {
    "att.x_r",        "att.x_w",        "att.x_k",        "att.x_v",        "att.x_a",        "att.x_g",
    "att.w0",         "att.a0",         "att.v0",         "att.k_k",        "att.k_a",        "ffn.x_k",
    "att.time_maa_x", "att.time_maa_w", "att.time_maa_k", "att.time_maa_v", "att.time_maa_r", "att.time_maa_g",
    "ffn.time_maa_k", "ffn.time_maa_r", "att.time_mix_k", "att.time_mix_v", "att.time_mix_r", "att.time_mix_g",
    "ffn.time_mix_k", "ffn.time_mix_r"};

/// Gives vectors the shape (1, 1, n) that they have in the original, which some converters squeeze: shapes are part of
/// a model's identity.
void shape_vectors(found_model& found) {
  const bool six = find_tensor(found, "blocks.0.att.time_maa_x") != nullptr;
  for (auto& tensor : found.tensors) {
    std::string_view number;
    const auto name = below_layer(tensor.name, "blocks.", number);
    const bool may = std::ranges::find(vectors, name) != std::end(vectors) || (six && name == "att.time_decay");
    tensor_view& view = tensor.view;
    if (may && view.row_major() && std::ranges::find(view.shape, view.elements()) != view.shape.end())
      set_row_major(view, {1, 1, view.elements()});
  }
}

/// Says that layer 0 has no value residual, which the original has and does not use.
void note_unused(found_model& found) {
  if (find_tensor(found, "blocks.0.att.r_k") && !find_tensor(found, "blocks.0.att.v0"))
    found.notes.emplace_back("absent: blocks.0.att.v0, v1 and v2, which are not used");
}

result<void> rename_as(form which, found_model& found) {
  switch (which) {
    case form::original: return {};
    case form::fla_7: return rename(found, fla_7());
    case form::fla_6: return from_fla_6(found);
    case form::rwkv_rs_7: return rename(found, rwkv_rs_7());
    case form::attention_7: return rename(found, attention_7());
    case form::hugging_face_6: return rename(found, hugging_face_6());
    case form::embeddings_7: return rename(found, embeddings_7());
    case form::model_embeddings_7: return rename(found, model_embeddings_7());
    case form::web_rwkv: return from_web_rwkv(found);
  }
  return {};
}

}  // namespace

result<void> to_original(found_model& found) {
  if (found.llama_cpp) return from_llama_cpp(found);
  if (found.rwkv_cpp) {
    const auto named = from_rwkv_cpp(found);
    shape_vectors(found);
    return named;
  }
  strip_prefix(found);
  const form which = recognise_form(found);
  if (const auto known = refuse_foreign(found); !known) return known;
  if (const auto renamed = rename_as(which, found); !renamed) return renamed;
  if (found.form.empty()) return {};
  shape_vectors(found);
  note_unused(found);
  return which == form::original ? result<void>() : require_ln0(found);
}

}  // namespace skein::model
