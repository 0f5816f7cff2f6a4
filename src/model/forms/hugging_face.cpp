#include "model/forms/hugging_face.hpp"

// The names are those of the converting programs: flash-linear-attention (utils/convert_from_rwkv7.py), rwkv-rs
// (rwkv_pth2st.py), llama.cpp (tensor_mapping.py, for the early repositories) and transformers.
namespace skein::model {
namespace {

// In fla and rwkv-rs alike.
constexpr rename_rule attention_rules[] = {
    {"x_r", "x_r", change::vector},         {"x_w", "x_w", change::vector},  {"x_k", "x_k", change::vector},
    {"x_v", "x_v", change::vector},         {"x_a", "x_a", change::vector},  {"x_g", "x_g", change::vector},
    {"k_k", "k_k", change::vector},         {"k_a", "k_a", change::vector},  {"r_k", "r_k"},
    {"r_proj.weight", "receptance.weight"}, {"k_proj.weight", "key.weight"}, {"v_proj.weight", "value.weight"},
    {"o_proj.weight", "output.weight"},     {"g_norm.*", "ln_x."},
};
constexpr rename_rule ffn_rules[] = {
    {"x_k", "x_k", change::vector},
    {"key.weight", "key.weight"},
    {"value.weight", "value.weight"},
};

constexpr rename_rule fla_7_outer[] = {
    {"model.embeddings.weight", "emb.weight"},
    {"model.layers.0.pre_norm.*", "blocks.0.ln0."},
    {"model.norm.*", "ln_out."},
    {"lm_head.weight", "head.weight"},
};
constexpr rename_rule fla_7_layer[] = {
    {"attn_norm.*", "ln1."},
    {"ffn_norm.*", "ln2."},
    {"attn.x_x", "att.x_r att.x_w att.x_k att.x_v att.x_a att.x_g", change::rows},  // files of version 1
    {"attn.w_lora.lora.0.weight", "att.w1", change::transpose},
    {"attn.w_lora.lora.2.weight", "att.w2", change::transpose},
    {"attn.w_lora.lora.2.bias", "att.w0", change::vector},
    {"attn.a_lora.lora.0.weight", "att.a1", change::transpose},
    {"attn.a_lora.lora.2.weight", "att.a2", change::transpose},
    {"attn.a_lora.lora.2.bias", "att.a0", change::vector},
    {"attn.v_lora.lora.0.weight", "att.v1", change::transpose},
    {"attn.v_lora.lora.2.weight", "att.v2", change::transpose},
    {"attn.v_lora.lora.2.bias", "att.v0", change::vector},
    {"attn.g_lora.lora.0.weight", "att.g1", change::transpose},
    {"attn.g_lora.lora.2.weight", "att.g2", change::transpose},
};
constexpr module_rules fla_7_modules[] = {{"attn.", "att.", attention_rules}, {"ffn.", "ffn.", ffn_rules}};

constexpr rename_rule rwkv_rs_outer[] = {
    {"model.embed_tokens.weight", "emb.weight"},
    {"model.embedding_norm.*", "blocks.0.ln0."},
    {"model.norm.*", "ln_out."},
    {"lm_head.weight", "head.weight"},
};
constexpr rename_rule rwkv_rs_layer[] = {
    {"input_layernorm.*", "ln1."}, {"post_attention_layernorm.*", "ln2."}, {"linear_attn.w0", "att.w0", change::vector},
    {"linear_attn.w1", "att.w1"},  {"linear_attn.w2", "att.w2"},           {"linear_attn.a0", "att.a0", change::vector},
    {"linear_attn.a1", "att.a1"},  {"linear_attn.a2", "att.a2"},           {"linear_attn.v0", "att.v0", change::vector},
    {"linear_attn.v1", "att.v1"},  {"linear_attn.v2", "att.v2"},           {"linear_attn.g1", "att.g1"},
    {"linear_attn.g2", "att.g2"},
};
constexpr module_rules rwkv_rs_modules[] = {{"linear_attn.", "att.", attention_rules}, {"mlp.", "ffn.", ffn_rules}};

constexpr rename_rule attention_7_outer[] = {
    {"model.embeddings.weight", "emb.weight"},
    {"model.embed_tokens.weight", "emb.weight"},
    {"model.pre_ln.*", "blocks.0.ln0."},
    {"model.layers.0.pre_ln.*", "blocks.0.ln0."},
    {"model.layers.0.pre_norm.*", "blocks.0.ln0."},
    {"model.ln_out.*", "ln_out."},
    {"model.norm.*", "ln_out."},
    {"head.weight", "head.weight"},
    {"lm_head.weight", "head.weight"},
};
constexpr rename_rule attention_7_layer[] = {
    {"ln0.*", "ln0."},       {"ln1.*", "ln1."},          {"ln2.*", "ln2."}, {"attention.time_mixer.*", "att."},
    {"attention.*", "att."}, {"feed_forward.*", "ffn."},
};

constexpr rename_rule hugging_face_6_outer[] = {
    {"rwkv.embeddings.weight", "emb.weight"},
    {"rwkv.ln_out.*", "ln_out."},
    {"head.weight", "head.weight"},
};
constexpr rename_rule hugging_face_6_layer[] = {
    {"pre_ln.*", "ln0."}, {"ln1.*", "ln1."}, {"ln2.*", "ln2."}, {"attention.*", "att."}, {"feed_forward.*", "ffn."},
};

constexpr rename_rule embeddings_7_outer[] = {
    {"rwkv7.embeddings.weight", "emb.weight"},
    {"rwkv7.ln_out.*", "ln_out."},
    {"head.weight", "head.weight"},
};
constexpr rename_rule model_embeddings_7_outer[] = {
    {"model.embeddings.weight", "emb.weight"},
    {"model.ln_out.*", "ln_out."},
    {"head.weight", "head.weight"},
    {"lm_head.weight", "head.weight"},
};
constexpr rename_rule any_layer[] = {{"*", ""}};

}  // namespace

const naming& fla_7() {
  static constexpr naming names{"Hugging Face, fla", "model.layers.", fla_7_outer, fla_7_layer, fla_7_modules};
  return names;
}
const naming& rwkv_rs_7() {
  static constexpr naming names{"Hugging Face, rwkv-rs", "model.layers.", rwkv_rs_outer, rwkv_rs_layer,
                                rwkv_rs_modules};
  return names;
}
const naming& attention_7() {
  static constexpr naming names{"Hugging Face, early RWKV-7", "model.layers.", attention_7_outer, attention_7_layer};
  return names;
}
const naming& hugging_face_6() {
  static constexpr naming names{"Hugging Face, RWKV-6", "rwkv.blocks.", hugging_face_6_outer, hugging_face_6_layer};
  return names;
}
const naming& embeddings_7() {
  static constexpr naming names{"Hugging Face, rwkv7. prefix", "rwkv7.blocks.", embeddings_7_outer, any_layer};
  return names;
}
const naming& model_embeddings_7() {
  static constexpr naming names{"Hugging Face, model. prefix", "model.blocks.", model_embeddings_7_outer, any_layer};
  return names;
}

}  // namespace skein::model
