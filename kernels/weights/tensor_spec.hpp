#pragma once
#include <array>
#include <cstdint>
#include <string_view>

/// The list of tensors of a model version: each version's layer template (rwkv7.hpp and its like) names each tensor
/// once, with its shape and when it is present. Binding a checkpoint, packing weights for a back end, size estimates
/// and random models are derived from that list.
namespace skein::kernels {

/// Sizes of a model, all taken from tensor shapes (model/model_info), never from a file name. Sizes that a version does
/// not have are 0.
struct model_dims {
  std::uint32_t layers = 0, embd = 0 /*C*/, heads = 0 /*H*/, head_size = 0 /*N*/, ffn = 0 /*F*/, vocab = 0 /*V*/;
  std::uint32_t rank_w = 0;                          ///< inner size of the decay's low-rank pair: v6, v7
  std::uint32_t rank_a = 0, rank_v = 0, rank_g = 0;  ///< v7: of the other low-rank pairs
  std::uint32_t rank_x = 0;                          ///< v6: of the low-rank pairs of the five token shifts
  std::uint32_t decays = 0;                          ///< v5: decays of a head: 1 (v5.1) or N (v5.2)

  /// A, the width of the attention: H * N, and C in version 4, which has no heads.
  [[nodiscard]] constexpr std::uint32_t att() const { return heads == 0 ? embd : heads * head_size; }
};

/// Extents of shapes, by their letters above.
enum class extent : std::uint8_t {
  none,
  C,
  A,
  F,
  H,
  N,
  V,
  rank_w,
  rank_a,
  rank_v,
  rank_g,
  rank_x,
  five_rank_x,
  five,
  decays
};

[[nodiscard]] constexpr std::uint32_t value_of(extent e, const model_dims& dims) {
  switch (e) {
    case extent::none: return 0;
    case extent::C: return dims.embd;
    case extent::A: return dims.att();
    case extent::F: return dims.ffn;
    case extent::H: return dims.heads;
    case extent::N: return dims.head_size;
    case extent::V: return dims.vocab;
    case extent::rank_w: return dims.rank_w;
    case extent::rank_a: return dims.rank_a;
    case extent::rank_v: return dims.rank_v;
    case extent::rank_g: return dims.rank_g;
    case extent::rank_x: return dims.rank_x;
    case extent::five_rank_x: return 5 * dims.rank_x;
    case extent::five: return 5;
    case extent::decays: return dims.decays;
  }
  return 0;
}

enum class presence : std::uint8_t {
  always,
  after_first,  ///< not used in layer 0: some files omit it, others store arbitrary values
  optional,     ///< in all layers or in none
};

/// One tensor of the list.
struct tensor_spec {
  std::string_view name;  ///< in the checkpoint; of a layer's tensors without "blocks.<layer>."
  std::array<extent, 3> shape;
  presence when = presence::always;
  /// The checkpoint stores matrices as (outputs, inputs), except the factors of low-rank pairs: (inputs, outputs).
  bool transposed = false;
};

}  // namespace skein::kernels
