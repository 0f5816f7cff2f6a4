#pragma once
#include "model/forms/renaming.hpp"

/// The names that conversions for Hugging Face transformers give to RWKV-6 and RWKV-7.
namespace skein::model {

/// flash-linear-attention, RWKV-7; also hf-adapter and MLX. Layer 0 has no value residual.
[[nodiscard]] const naming& fla_7();
/// rwkv-rs: original names and orientation in a layer, other names around it.
[[nodiscard]] const naming& rwkv_rs_7();
/// The early repositories of RWKV-7: `model.layers.N.attention`, sometimes with `time_mixer.` in between.
[[nodiscard]] const naming& attention_7();
/// `Rwkv6ForCausalLM`.
[[nodiscard]] const naming& hugging_face_6();
/// `rwkv7.` or `model.` before original names, with `embeddings` instead of `emb`.
[[nodiscard]] const naming& embeddings_7();
[[nodiscard]] const naming& model_embeddings_7();

}  // namespace skein::model
