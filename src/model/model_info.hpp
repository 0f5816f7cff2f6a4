#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "kernels/weights/model_weights.hpp"
#include "model/checkpoint.hpp"
#include "model/state_layout.hpp"

namespace skein::model {

enum class rwkv_version : std::uint8_t { v4, v5_1, v5_2, v6, v7 };
[[nodiscard]] std::string_view to_string(rwkv_version v);  ///< "4", "5.1", "5.2", "6", "7"

/// The architecture of a checkpoint, read from tensor names and shapes.
struct model_info {
  rwkv_version version = rwkv_version::v7;
  std::uint32_t layers = 0, embd = 0, att = 0, ffn = 0, vocab = 0;
  std::uint32_t heads = 0, head_size = 0;                        ///< 0 in v4, which has no heads
  std::uint32_t rank_w = 0, rank_a = 0, rank_v = 0, rank_g = 0;  ///< v7; rank_w also in v6
  std::uint32_t rank_x = 0;                                      ///< v6: of the token shifts
  std::uint32_t decays = 0;                                      ///< v5: decays of a head
  dtype matrix_type = dtype::f32;                                ///< element type of most matrix elements
  std::uint64_t parameters = 0;                                  ///< elements of all tensors except time_state
  bool has_time_state = false;                                   ///< the file contains an initial state
  state_layout state;

  [[nodiscard]] kernels::model_dims dims() const;
};

/// Errors: bad_file (missing tensors, impossible or inconsistent sizes, tensors of two versions, LoRA adapters; the
/// text names the tensor), unsupported (a research variant). Checks sizes against limits before computing with them.
[[nodiscard]] result<model_info> describe(const checkpoint& file);

/// Binds the tensors of a checkpoint, each with its shape checked. The views point into `file`.
/// Errors: bad_file naming the tensor, expected and found shape.
[[nodiscard]] result<kernels::model_weights> bind(const checkpoint& file, const model_info& info);

/// Whether the version's list of tensors has one of this name, e.g. "att.key.weight" in a layer.
[[nodiscard]] bool has_layer_tensor(rwkv_version version, std::string_view name);

/// Identity of a model, 32 hex digits: XXH3-128 over the number of used tensors, the name of each in name order with
/// its tensor_digest(), and `vocabulary_hash`. It follows names, shapes and values, so it is the same in every
/// container, for every layout, and for types that hold the same values; tensors that were converted count as the
/// original ones. Reads the whole file once and hashes tensors in parallel on all cores.
[[nodiscard]] std::string identity(const checkpoint& file, std::string_view vocabulary_hash);

/// A tensor's part of the identity, 32 hex digits: XXH3-128 of shape and elements, in the first of bf16, fp16 and fp32
/// that has all of its values. Of other types, the elements as they are.
[[nodiscard]] std::string tensor_digest(const tensor_view& view);

/// Results of one pass over the whole file.
struct read_through {
  std::string identity;         ///< as returned by identity()
  std::string former_identity;  ///< as version 0.2.0 computed it: with types as stored and with unused tensors
  std::string nonfinite;        ///< name of the first used tensor, in name order, with NaN or infinity; empty: none
};
[[nodiscard]] read_through identify(const checkpoint& file, std::string_view vocabulary_hash);

/// An initial state from a state-tuning file (blocks.N.att.time_state), in the layout of `info.state`. Errors: as
/// checkpoint::open, bad_file if shapes differ from the model's (both are named) or a tensor has NaN or infinity
/// without `allow_nonfinite`, unsupported for v4.
[[nodiscard]] result<std::vector<float>> load_tuned_state(const std::filesystem::path& path, const model_info& info,
                                                          bool allow_nonfinite = false);
/// XXH3-128 of a state's floats, 32 hex digits; identifies the initial state of a session.
[[nodiscard]] std::string state_identity(std::span<const float> state);

}  // namespace skein::model
