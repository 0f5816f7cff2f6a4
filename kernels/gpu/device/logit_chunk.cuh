#pragma once
#include "kernels/gpu/device/block_mass.cuh"
#include "kernels/gpu/device/logit.cuh"
#include "kernels/gpu/sampling_work.hpp"

/// A row of logits, and the chunk of it that a thread block holds in registers: four packets a thread, packet p of
/// thread t being the tokens (p * 256 + t) * 4 ... of the chunk, so that 16 neighbours hold a block of 64.
namespace skein::kernels::gpu {

using logit_packet = packet<float>;
inline constexpr unsigned chunk_packets = chunk_tokens / (mass_threads * logit_packet::size);
inline constexpr unsigned block_lanes = block_tokens / logit_packet::size;  // threads that hold a block

[[nodiscard]] __device__ inline std::uint32_t place_in_chunk(unsigned p) {
  return (p * mass_threads + threadIdx.x) * logit_packet::size;
}

struct logit_row {
  const float* logits;
  const std::uint32_t* allowed;  ///< nullptr: all
  std::uint32_t vocab;

  /// The packets at tokens[i] where `wanted[i]`: finite logits, and no_logit beyond the vocabulary. All are under way
  /// before the first is looked at.
  template <unsigned count>
  __device__ void load(const std::uint32_t (&tokens)[count], const bool (&wanted)[count],
                       logit_packet (&out)[count]) const {
    if (vocab % logit_packet::size == 0) {  // a packet lies within the vocabulary or beyond it
      for (unsigned p = 0; p < count; ++p)
        if (wanted[p] && tokens[p] < vocab) out[p] = load_packet(logits + tokens[p]);
      for (unsigned p = 0; p < count; ++p) {
        const bool is_there = wanted[p] && tokens[p] < vocab;
        for (unsigned i = 0; i < logit_packet::size; ++i)
          out[p].values[i] = is_there ? finite_logit(out[p].values[i]) : no_logit();
      }
    } else {
      for (unsigned p = 0; p < count; ++p)
        for (unsigned i = 0; i < logit_packet::size; ++i)
          if (wanted[p] && tokens[p] + i < vocab) out[p].values[i] = logits[tokens[p] + i];
      for (unsigned p = 0; p < count; ++p)
        for (unsigned i = 0; i < logit_packet::size; ++i)
          out[p].values[i] = wanted[p] && tokens[p] + i < vocab ? finite_logit(out[p].values[i]) : no_logit();
    }
  }
  [[nodiscard]] __device__ logit_packet load(std::uint32_t token) const {
    logit_packet out[1];
    load<1>({token}, {true}, out);
    return out[0];
  }
  __device__ void load_chunk(std::uint32_t first, logit_packet (&out)[chunk_packets]) const {
    std::uint32_t tokens[chunk_packets];
    bool wanted[chunk_packets];
    for (unsigned p = 0; p < chunk_packets; ++p) {
      tokens[p] = first + place_in_chunk(p);
      wanted[p] = true;
    }
    load(tokens, wanted, out);
  }
  /// Leaves what may be drawn. A packet begins at a multiple of its size, so its bits are of one word.
  __device__ void restrict(std::uint32_t token, logit_packet& values) const {
    if (allowed == nullptr || token >= vocab) return;
    const std::uint32_t bits = allowed[token / 32] >> token % 32;
    for (unsigned i = 0; i < logit_packet::size; ++i)
      if ((bits >> i & 1) == 0) values.values[i] = no_logit();
  }
};

[[nodiscard]] __device__ inline float packet_max(const logit_packet& of) {
  float max = of.values[0];
  for (unsigned i = 1; i < logit_packet::size; ++i)
    if (of.values[i] > max) max = of.values[i];
  return max;
}

/// Over the 16 threads that hold a block of 64 tokens.
[[nodiscard]] __device__ inline float max_of_block(float value) {
  for (unsigned mask = block_lanes / 2; mask > 0; mask /= 2) {
    const float other = shuffle_xor(value, mask);
    if (other > value) value = other;
  }
  return value;
}

/// Which packet's block a thread ends with in fold_blocks.
[[nodiscard]] __device__ inline unsigned packet_of_thread() {
  return threadIdx.x % block_lanes / (block_lanes / chunk_packets);
}
/// each[p] of the 16 threads that hold a block of packet p, folded by `fold`, for the block of packet_of_thread(). The
/// first steps halve what a thread goes on with, so that four blocks cost five shuffles and not sixteen.
template <typename Fold>
[[nodiscard]] __device__ float fold_blocks(const float (&each)[chunk_packets], const Fold& fold) {
  static_assert(chunk_packets == 4 && block_lanes == 16);
  const bool upper = threadIdx.x & 8, odd = threadIdx.x & 4;
  const float first = fold(upper ? each[2] : each[0], shuffle_xor(upper ? each[0] : each[2], 8));
  const float second = fold(upper ? each[3] : each[1], shuffle_xor(upper ? each[1] : each[3], 8));
  float own = fold(odd ? second : first, shuffle_xor(odd ? first : second, 4));
  own = fold(own, shuffle_xor(own, 2));
  return fold(own, shuffle_xor(own, 1));
}

/// The sum of exp((logit - reference) * scale) in powers of two; tokens that may not be drawn add nothing.
[[nodiscard]] __device__ inline float packet_sum(const logit_packet& of, float reference, float scale) {
  float sum = 0;
  for (unsigned i = 0; i < logit_packet::size; ++i) sum += exp2f((of.values[i] - reference) * scale);
  return sum;
}
inline constexpr float log2_e = 0x1.715476p0f;

}  // namespace skein::kernels::gpu
