#pragma once
#include "kernels/gpu/sampling/block_mass.cuh"
#include "kernels/gpu/sampling/logit.cuh"
#include "kernels/gpu/sampling/sampling_work.hpp"

/// A row of logits, and the chunk of it that a thread block holds in registers. A thread has four packets: packet p of
/// thread t has the tokens from (p * 256 + t) * 4 on of the chunk, so 16 neighbouring threads hold a block of 64.
namespace skein::kernels::gpu {

using logit_packet = packet<float>;
inline constexpr unsigned chunk_packets = logit_chunk_tokens / (mass_threads * logit_packet::size);
inline constexpr unsigned block_lanes = block_tokens / logit_packet::size;  // threads that hold a block

[[nodiscard]] __device__ inline std::uint32_t place_in_chunk(unsigned p) {
  return (p * mass_threads + threadIdx.x) * logit_packet::size;
}

struct logit_row {
  const float* logits;
  const std::uint32_t* allowed;  ///< nullptr: all
  std::uint32_t vocab;

  /// Loads the packets at tokens[i] if `wanted[i]`: finite logits, and no_logit beyond the vocabulary. All loads are
  /// issued before the first one is used.
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
  /// Issues the loads of this thread's packets of a chunk. settle_chunk turns them into logits when they are needed.
  __device__ void request_chunk(std::uint32_t first, logit_packet (&out)[chunk_packets]) const {
    for (unsigned p = 0; p < chunk_packets; ++p) {
      const std::uint32_t token = first + place_in_chunk(p);
      if (vocab % logit_packet::size == 0) {
        if (token < vocab) out[p] = load_packet(logits + token);
      } else {
        for (unsigned i = 0; i < logit_packet::size; ++i)
          if (token + i < vocab) out[p].values[i] = logits[token + i];
      }
    }
  }
  /// Makes logits finite, and no_logit beyond the vocabulary; a 0 may keep its sign. True if one was NaN or infinite.
  __device__ bool settle_chunk(std::uint32_t first, logit_packet (&values)[chunk_packets]) const {
    if (first + logit_chunk_tokens <= vocab) {
      // One addition per logit shows whether there is anything to do; finite_logit takes five operations.
      float sum = 0;
      for (unsigned p = 0; p < chunk_packets; ++p) {
        const auto& v = values[p].values;
        sum += (fabsf(v[0]) + fabsf(v[1])) + (fabsf(v[2]) + fabsf(v[3]));
      }
      if (sum <= -lowest_logit) return false;
    }
    bool nonfinite = false;
    for (unsigned p = 0; p < chunk_packets; ++p)
      for (unsigned i = 0; i < logit_packet::size; ++i) {
        float& logit = values[p].values[i];
        const bool is_there = first + place_in_chunk(p) + i < vocab;
        nonfinite |= is_there && !(fabsf(logit) <= -lowest_logit);
        logit = is_there ? finite_logit(logit) : no_logit();
      }
    return nonfinite;
  }
  /// Masks the tokens that are not allowed. A packet begins at a multiple of its size, so its bits are in one word.
  __device__ void restrict(std::uint32_t token, logit_packet& values) const {
    if (allowed == nullptr || token >= vocab) return;
    const std::uint32_t bits = allowed[token / 32] >> token % 32;
    for (unsigned i = 0; i < logit_packet::size; ++i)
      if ((bits >> i & 1) == 0) values.values[i] = no_logit();
  }
};

/// sampling::uniform_of_tokens. Not inlined: it is rarely needed, and its registers would be taken from all others.
__attribute__((noinline)) __device__ inline packet<float> uniform_of_tokens(std::uint64_t seed, std::uint32_t row,
                                                                            std::uint32_t index, std::uint32_t first) {
  std::uint32_t words[4] = {index, row, first, 1};
  philox(words, seed);
  packet<float> numbers;
  for (unsigned i = 0; i < 4; ++i) numbers.values[i] = static_cast<float>(words[i] >> 8) * 0x1p-24f;
  return numbers;
}

/// The noise of one sample, see sampling_params::noise; no noise if the width is 0.
struct sample_noise {
  float width, temperature;
  std::uint64_t seed;
  std::uint32_t row, index;

  /// Adds noise to the logits of a packet that begins at `token`.
  __device__ void add(std::uint32_t token, logit_packet& values) const {
    if (width == 0) return;
    const packet<float> numbers = uniform_of_tokens(seed, row, index, token);
    for (unsigned i = 0; i < logit_packet::size; ++i) {
      float& logit = values.values[i];
      if (logit >= lowest_logit) logit = finite_logit(logit / temperature + width * numbers.values[i]);
    }
  }
};

[[nodiscard]] __device__ inline float packet_max(const logit_packet& of) {
  float max = of.values[0];
  for (unsigned i = 1; i < logit_packet::size; ++i)
    if (of.values[i] > max) max = of.values[i];
  return max;
}

/// The packet whose block a thread has after fold_blocks.
[[nodiscard]] __device__ inline unsigned packet_of_thread() {
  return threadIdx.x % block_lanes / (block_lanes / chunk_packets);
}
/// Folds each[p] over the 16 threads that hold a block of packet p; returns the result for the block of
/// packet_of_thread(). The first steps halve the number of values per thread, so four blocks take five shuffles instead
/// of sixteen.
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

/// Distributes the results of fold_blocks to all threads of each packet's block.
__device__ inline void spread_blocks(float own, float (&each)[chunk_packets]) {
  const bool upper = threadIdx.x & 8, odd = threadIdx.x & 4;
  const float by_4 = shuffle_xor(own, 4), by_8 = shuffle_xor(own, 8), by_12 = shuffle_xor(by_4, 8);
  const float even_here = odd ? by_4 : own, odd_here = odd ? own : by_4;
  const float even_there = odd ? by_12 : by_8, odd_there = odd ? by_8 : by_12;
  each[0] = upper ? even_there : even_here;
  each[1] = upper ? odd_there : odd_here;
  each[2] = upper ? even_here : even_there;
  each[3] = upper ? odd_here : odd_there;
}

/// The sum of exp((logit - reference) * scale) in powers of two; tokens that may not be sampled add nothing.
[[nodiscard]] __device__ inline float packet_sum(const logit_packet& of, float reference, float scale) {
  float sum = 0;
  for (unsigned i = 0; i < logit_packet::size; ++i) sum += power_of_two((of.values[i] - reference) * scale);
  return sum;
}
inline constexpr float log2_e = 0x1.715476p0f;

}  // namespace skein::kernels::gpu
