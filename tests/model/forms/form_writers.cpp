#include "tests/model/forms/form_writers.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace skein::test {
namespace {

/// How a form stores the tensor: as it is, with the last two axes swapped, or without dimensions of 1.
enum class stored { same, swapped, squeezed };

struct form_name {
  std::string_view original, theirs;
  stored how = stored::same;
};

std::string bytes_at(const tensor_plan& from, std::size_t element) {
  const std::size_t size = dtype_bytes(from.type);
  return from.data.substr(element * size, size);
}

tensor_plan swapped(const tensor_plan& from) {
  tensor_plan to = from;
  const std::size_t axes = from.shape.size();
  if (axes < 2) throw std::invalid_argument(from.name + " is not a matrix");
  std::swap(to.shape[axes - 2], to.shape[axes - 1]);
  const auto rows = static_cast<std::size_t>(from.shape[axes - 2]),
             columns = static_cast<std::size_t>(from.shape[axes - 1]);
  const std::size_t matrices = from.data.size() / dtype_bytes(from.type) / (rows * columns);
  to.data.clear();
  for (std::size_t m = 0; m < matrices; ++m)
    for (std::size_t c = 0; c < columns; ++c)
      for (std::size_t r = 0; r < rows; ++r) to.data += bytes_at(from, (m * rows + r) * columns + c);
  return to;
}

tensor_plan squeezed(tensor_plan from) {
  std::erase(from.shape, 1);
  return from;
}

tensor_plan as(stored how, const tensor_plan& from) {
  if (how == stored::swapped) return swapped(from);
  return how == stored::squeezed ? squeezed(from) : from;
}

/// Number and rest of "blocks.<number>.<rest>"; an empty rest for other names.
std::pair<std::string, std::string> layer_of(const std::string& name) {
  constexpr std::string_view before = "blocks.";
  const auto dot = name.find('.', before.size());
  if (!name.starts_with(before) || dot == std::string::npos) return {};
  return {name.substr(before.size(), dot - before.size()), name.substr(dot + 1)};
}

/// Renames after two lists; a name in neither list throws.
plan renamed(const plan& from, const std::vector<form_name>& outer, const std::string& layers,
             const std::vector<form_name>& inner) {
  plan to;
  for (const auto& tensor : from) {
    const auto [number, rest] = layer_of(tensor.name);
    const auto whole = std::ranges::find(outer, tensor.name, &form_name::original);
    const auto part = std::ranges::find(inner, rest, &form_name::original);
    if (whole == outer.end() && part == inner.end()) throw std::out_of_range("no name for " + tensor.name);
    tensor_plan made = as(whole != outer.end() ? whole->how : part->how, tensor);
    made.name = whole != outer.end() ? std::string(whole->theirs) : layers + number + "." + std::string(part->theirs);
    to.push_back(std::move(made));
  }
  return to;
}

/// Replaces tensors of one layer by one whose rows they are, in this order.
plan fused(plan from, const std::string& layers, const std::vector<std::string>& parts, const std::string& whole,
           std::vector<std::int64_t> ones) {
  plan to;
  for (auto& tensor : from) {
    const auto ends = [&](const std::string& part) { return tensor.name.ends_with("." + part); };
    const auto part = std::ranges::find_if(parts, ends);
    if (part == parts.end() || !tensor.name.starts_with(layers)) {
      to.push_back(tensor);
      continue;
    }
    if (part != parts.begin()) continue;
    const std::string before = tensor.name.substr(0, tensor.name.size() - part->size());
    tensor_plan made{before + whole, tensor.type, {static_cast<std::int64_t>(parts.size())}, {}};
    made.shape.insert(made.shape.end(), ones.begin(), ones.end());
    made.shape.push_back(tensor.shape.back());
    for (const auto& each : parts) made.data += named(from, before + each).data;
    to.push_back(std::move(made));
  }
  return to;
}

plan prefixed(plan from, std::string_view prefix, std::string_view bare = "") {
  for (auto& tensor : from)
    if (tensor.name != bare) tensor.name = std::string(prefix) + tensor.name;
  return from;
}

// ---------------------------------------------------------------- RWKV-7

const std::vector<form_name> fla_outer{
    {"emb.weight", "model.embeddings.weight"},
    {"blocks.0.ln0.weight", "model.layers.0.pre_norm.weight"},
    {"blocks.0.ln0.bias", "model.layers.0.pre_norm.bias"},
    {"ln_out.weight", "model.norm.weight"},
    {"ln_out.bias", "model.norm.bias"},
    {"head.weight", "lm_head.weight"},
};

const std::vector<form_name> fla_7{
    {"ln1.weight", "attn_norm.weight"},
    {"ln1.bias", "attn_norm.bias"},
    {"ln2.weight", "ffn_norm.weight"},
    {"ln2.bias", "ffn_norm.bias"},
    {"att.x_r", "attn.x_r"},
    {"att.x_w", "attn.x_w"},
    {"att.x_k", "attn.x_k"},
    {"att.x_v", "attn.x_v"},
    {"att.x_a", "attn.x_a"},
    {"att.x_g", "attn.x_g"},
    {"att.k_k", "attn.k_k", stored::squeezed},
    {"att.k_a", "attn.k_a", stored::squeezed},
    {"att.r_k", "attn.r_k"},
    {"att.w0", "attn.w_lora.lora.2.bias", stored::squeezed},
    {"att.w1", "attn.w_lora.lora.0.weight", stored::swapped},
    {"att.w2", "attn.w_lora.lora.2.weight", stored::swapped},
    {"att.a0", "attn.a_lora.lora.2.bias", stored::squeezed},
    {"att.a1", "attn.a_lora.lora.0.weight", stored::swapped},
    {"att.a2", "attn.a_lora.lora.2.weight", stored::swapped},
    {"att.v0", "attn.v_lora.lora.2.bias", stored::squeezed},
    {"att.v1", "attn.v_lora.lora.0.weight", stored::swapped},
    {"att.v2", "attn.v_lora.lora.2.weight", stored::swapped},
    {"att.g1", "attn.g_lora.lora.0.weight", stored::swapped},
    {"att.g2", "attn.g_lora.lora.2.weight", stored::swapped},
    {"att.receptance.weight", "attn.r_proj.weight"},
    {"att.key.weight", "attn.k_proj.weight"},
    {"att.value.weight", "attn.v_proj.weight"},
    {"att.output.weight", "attn.o_proj.weight"},
    {"att.ln_x.weight", "attn.g_norm.weight"},
    {"att.ln_x.bias", "attn.g_norm.bias"},
    {"ffn.x_k", "ffn.x_k", stored::squeezed},
    {"ffn.key.weight", "ffn.key.weight"},
    {"ffn.value.weight", "ffn.value.weight"},
};

plan fla_7_of(const plan& from) { return renamed(without_unused(from), fla_outer, "model.layers.", fla_7); }

plan fused_7_of(const plan& from, std::vector<std::int64_t> ones) {
  return fused(fla_7_of(from), "model.layers.",
               {"attn.x_r", "attn.x_w", "attn.x_k", "attn.x_v", "attn.x_a", "attn.x_g"}, "attn.x_x", std::move(ones));
}

/// Original names of a layer below `attention` and `ffn`, vectors squeezed.
std::vector<form_name> original_layer(const std::string& attention, const std::string& ffn,
                                      std::vector<std::string>& memory) {
  constexpr std::string_view vectors[] = {"x_r", "x_w", "x_k", "x_v", "x_a", "x_g", "w0", "a0", "v0", "k_k", "k_a"};
  constexpr std::string_view others[] = {"w1", "w2", "a1", "a2", "v1", "v2", "g1", "g2", "r_k"};
  memory.reserve(200);
  const auto keep = [&](std::string text) -> std::string_view { return memory.emplace_back(std::move(text)); };
  std::vector<form_name> names;
  for (const auto name : vectors)
    names.push_back({keep("att." + std::string(name)), keep(attention + std::string(name)), stored::squeezed});
  for (const auto name : others)
    names.push_back({keep("att." + std::string(name)), keep(attention + std::string(name))});
  names.push_back({"ffn.x_k", keep(ffn + "x_k"), stored::squeezed});
  names.push_back({"ffn.key.weight", keep(ffn + "key.weight")});
  names.push_back({"ffn.value.weight", keep(ffn + "value.weight")});
  return names;
}

plan rwkv_rs_of(const plan& from) {
  std::vector<std::string> memory;
  std::vector<form_name> inner = original_layer("linear_attn.", "mlp.", memory);
  const std::vector<form_name> more{
      {"ln1.weight", "input_layernorm.weight"},
      {"ln1.bias", "input_layernorm.bias"},
      {"ln2.weight", "post_attention_layernorm.weight"},
      {"ln2.bias", "post_attention_layernorm.bias"},
      {"att.receptance.weight", "linear_attn.r_proj.weight"},
      {"att.key.weight", "linear_attn.k_proj.weight"},
      {"att.value.weight", "linear_attn.v_proj.weight"},
      {"att.output.weight", "linear_attn.o_proj.weight"},
      {"att.ln_x.weight", "linear_attn.g_norm.weight"},
      {"att.ln_x.bias", "linear_attn.g_norm.bias"},
  };
  inner.insert(inner.end(), more.begin(), more.end());
  const std::vector<form_name> outer{
      {"emb.weight", "model.embed_tokens.weight"},
      {"blocks.0.ln0.weight", "model.embedding_norm.weight"},
      {"blocks.0.ln0.bias", "model.embedding_norm.bias"},
      {"ln_out.weight", "model.norm.weight"},
      {"ln_out.bias", "model.norm.bias"},
      {"head.weight", "lm_head.weight"},
  };
  return renamed(without_unused(from), outer, "model.layers.", inner);
}

/// Names that differ in their beginnings only.
plan replaced(plan from, const std::vector<std::pair<std::string, std::string>>& parts) {
  for (auto& tensor : from)
    for (const auto& [original, theirs] : parts)
      if (const auto at = tensor.name.find(original); at != std::string::npos)
        tensor.name.replace(at, original.size(), theirs);
  return from;
}

plan early_7_of(const plan& from, const std::string& infix) {
  return replaced(from, {{"blocks.0.ln0", "model.pre_ln"},
                         {"blocks.", "model.layers."},
                         {".att.", ".attention." + infix},
                         {".ffn.", ".feed_forward."},
                         {"emb.", "model.embeddings."},
                         {"ln_out.", "model.ln_out."}});
}

/// web-rwkv: names as they are; of these tensors the last two axes are swapped.
plan swapped_where(plan from, const std::vector<std::string_view>& parts) {
  for (auto& tensor : from)
    if (std::ranges::any_of(parts, [&](std::string_view part) { return tensor.name.find(part) != std::string::npos; }))
      tensor = swapped(tensor);
  return from;
}

// ---------------------------------------------------------------- RWKV-6

const std::vector<form_name> fla_6{
    {"ln1.weight", "attn_norm.weight"},
    {"ln1.bias", "attn_norm.bias"},
    {"ln2.weight", "ffn_norm.weight"},
    {"ln2.bias", "ffn_norm.bias"},
    {"att.time_maa_x", "attn.x_proj.0.mu", stored::squeezed},
    {"att.time_maa_r", "attn.bias_r"},
    {"att.time_maa_w", "attn.bias_w"},
    {"att.time_maa_k", "attn.bias_k"},
    {"att.time_maa_v", "attn.bias_v"},
    {"att.time_maa_g", "attn.bias_g"},
    {"att.time_maa_w1", "attn.x_proj.0.linear.weight"},
    {"att.time_maa_w2", "attn.x_proj.2.weight"},
    {"att.time_decay", "attn.w_proj.linear.lora.2.bias", stored::squeezed},
    {"att.time_decay_w1", "attn.w_proj.linear.lora.0.weight", stored::swapped},
    {"att.time_decay_w2", "attn.w_proj.linear.lora.2.weight", stored::swapped},
    {"att.time_faaaa", "attn.bonus"},
    {"att.receptance.weight", "attn.r_proj.linear.weight"},
    {"att.key.weight", "attn.k_proj.linear.weight"},
    {"att.value.weight", "attn.v_proj.linear.weight"},
    {"att.gate.weight", "attn.g_proj.linear.weight"},
    {"att.output.weight", "attn.o_proj.weight"},
    {"att.ln_x.weight", "attn.g_norm.weight"},
    {"att.ln_x.bias", "attn.g_norm.bias"},
    {"ffn.time_maa_k", "ffn.key.mu", stored::squeezed},
    {"ffn.time_maa_r", "ffn.receptance.mu", stored::squeezed},
    {"ffn.key.weight", "ffn.key.linear.weight"},
    {"ffn.value.weight", "ffn.value.weight"},
    {"ffn.receptance.weight", "ffn.receptance.linear.weight"},
};

/// Slices r, w, k, v, g of an original whose order is w, k, v, r, g.
constexpr std::size_t slice_of[] = {3, 0, 1, 2, 4};

/// time_maa_w1 (D, 5 e): transposed, slices in fla's order, by formula.
tensor_plan first_pairs(const tensor_plan& from) {
  const auto width = static_cast<std::size_t>(from.shape[0]), inner = static_cast<std::size_t>(from.shape[1]);
  const std::size_t rank = inner / 5;
  tensor_plan to{from.name, from.type, {from.shape[1], from.shape[0]}, {}};
  for (const std::size_t slice : slice_of)
    for (std::size_t e = 0; e < rank; ++e)
      for (std::size_t d = 0; d < width; ++d) to.data += bytes_at(from, d * inner + slice * rank + e);
  return to;
}

/// time_maa_w2 (5, e, D): (D, 5 e), slices side by side.
tensor_plan second_pairs(const tensor_plan& from) {
  const auto rank = static_cast<std::size_t>(from.shape[1]), width = static_cast<std::size_t>(from.shape[2]);
  tensor_plan to{from.name, from.type, {from.shape[2], 5 * from.shape[1]}, {}};
  for (std::size_t d = 0; d < width; ++d)
    for (const std::size_t slice : slice_of)
      for (std::size_t e = 0; e < rank; ++e) to.data += bytes_at(from, (slice * rank + e) * width + d);
  return to;
}

plan all_squeezed(plan tensors) {
  for (auto& tensor : tensors)
    if (tensor.shape.size() == 3 && tensor.shape[0] == 1 && tensor.shape[1] == 1) tensor = squeezed(std::move(tensor));
  return tensors;
}

plan web_rwkv_7_of(const plan& from) {
  return swapped_where(from, {".w1", ".w2", ".a1", ".a2", ".g1", ".g2", ".v1", ".v2", "time_state"});
}

plan web_rwkv_6_of(const plan& from) {
  return swapped_where(replaced(from, {{"time_faaaa", "time_first"}, {"time_maa", "time_mix"}}),
                       {"time_mix_w1", "time_mix_w2", "time_decay_w1", "time_decay_w2"});
}

plan fla_6_of(const plan& from) {
  plan to = renamed(from, fla_outer, "model.layers.", fla_6);
  for (auto& tensor : to) {
    if (tensor.name.ends_with("x_proj.0.linear.weight")) tensor = first_pairs(tensor);
    if (tensor.name.ends_with("x_proj.2.weight")) tensor = second_pairs(tensor);
  }
  return fused(std::move(to), "model.layers.",
               {"attn.bias_r", "attn.bias_w", "attn.bias_k", "attn.bias_v", "attn.bias_g"}, "attn.x_bias", {});
}

}  // namespace

plan plan_of(const model::checkpoint& file) {
  plan tensors;
  for (const auto& [name, view, digest, stored] : file.tensors()) {
    tensor_plan made{name, view.type, view.shape, {}};
    const std::size_t size = dtype_bytes(view.type);
    std::vector<std::int64_t> index(view.shape.size(), 0);
    for (std::int64_t n = 0; n < view.elements(); ++n) {
      const std::int64_t at = std::inner_product(index.begin(), index.end(), view.stride.begin(), std::int64_t{0});
      made.data.append(reinterpret_cast<const char*>(view.data) + static_cast<std::size_t>(at) * size, size);
      for (std::size_t d = index.size(); d-- > 0 && ++index[d] == view.shape[d];) index[d] = 0;
    }
    tensors.push_back(std::move(made));
  }
  return tensors;
}

plan without_unused(plan tensors) {
  for (const char* name : {"blocks.0.att.v0", "blocks.0.att.v1", "blocks.0.att.v2"})
    tensors = without(std::move(tensors), name);
  return tensors;
}

const std::vector<model_form>& forms_of_7() {
  static const std::vector<model_form> forms{
      {"Hugging Face, fla", fla_7_of, false},
      {"Hugging Face, fla", [](const plan& p) { return prefixed(fla_7_of(p), "_orig_mod."); }, false},
      {"Hugging Face, fla", [](const plan& p) { return fused_7_of(p, {}); }, false},
      {"Hugging Face, fla",
       [](const plan& p) {
         return fused_7_of(p, {1, 1});
       },
       false},
      {"Hugging Face, rwkv-rs", rwkv_rs_of, false},
      {"Hugging Face, rwkv7. prefix", [](const plan& p) { return prefixed(p, "rwkv7.", "head.weight"); }},
      {"Hugging Face, rwkv7. prefix",
       [](const plan& p) {
         return prefixed(replaced(p, {{"emb.", "embeddings."}}), "rwkv7.", "head.weight");
       }},
      {"Hugging Face, any-to-rwkv", [](const plan& p) { return prefixed(without_unused(p), "model.", "head.weight"); },
       false},
      {"Hugging Face, early RWKV-7", [](const plan& p) { return early_7_of(p, ""); }},
      {"Hugging Face, early RWKV-7", [](const plan& p) { return early_7_of(p, "time_mixer."); }},
      {"web-rwkv .st", web_rwkv_7_of},
      {"web-rwkv .st", [](const plan& p) { return all_squeezed(web_rwkv_7_of(p)); }},
      {"Hugging Face, early RWKV-7", [](const plan& p) { return all_squeezed(early_7_of(p, "")); }},
      {"Hugging Face, rwkv7. prefix",
       [](const plan& p) { return prefixed(prefixed(p, "rwkv7.", "head.weight"), "module."); }},
      {"Hugging Face, any-to-rwkv",
       [](const plan& p) {
         return prefixed(prefixed(without_unused(p), "model.", "head.weight"), "_orig_mod.module.");
       },
       false},
  };
  return forms;
}

const std::vector<model_form>& forms_of_6() {
  static const std::vector<model_form> forms{
      {"Hugging Face, RWKV-6",
       [](const plan& p) {
         return replaced(p, {{"blocks.0.ln0", "blocks.0.pre_ln"},
                             {"blocks.", "rwkv.blocks."},
                             {".att.", ".attention."},
                             {".ffn.", ".feed_forward."},
                             {"emb.", "rwkv.embeddings."},
                             {"ln_out.", "rwkv.ln_out."}});
       }},
      {"Hugging Face, fla, RWKV-6", fla_6_of},
      {"web-rwkv .st", web_rwkv_6_of},
      {"web-rwkv .st", [](const plan& p) { return all_squeezed(web_rwkv_6_of(p)); }},
  };
  return forms;
}

const std::vector<model_form>& forms_of_5() {
  static const std::vector<model_form> forms{{"web-rwkv .st", [](const plan& p) {
                                                return replaced(p, {{"time_faaaa", "time_first"}});
                                              }}};
  return forms;
}

}  // namespace skein::test
