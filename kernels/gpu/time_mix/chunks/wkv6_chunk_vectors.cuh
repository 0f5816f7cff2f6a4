#pragma once
#include "kernels/gpu/time_mix/chunks/chunk_block.cuh"
#include "kernels/gpu/time_mix/time_mix_couple.cuh"
#include "kernels/gpu/time_mix/wkv6.hpp"

/// The shared memory of a chunk of wkv6_chunks.cu, and its first contents: the vectors of the tokens and their decays.
namespace skein::kernels::gpu {

/// r and k, each token scaled by a power of two (see power_below), and w.
struct wkv6_vectors {
  matrix r, k;
  float w[side][spread_channels];
};
/// What later replaces them: the state before the chunk, as a left operand, Y, [token, value], and g.
struct wkv6_late_comers {
  operand_pair state[matrix_pairs];
  float y[side][spread_channels];
  alignas(16) std::uint16_t g[side * side];
};

enum wkv6_weight : unsigned { decay_weight, bonus_weight, wkv6_norm_weight, wkv6_norm_bias, wkv6_weight_count };
static_assert(wkv6_weight_count * side == threads);

/// Matrices with the names of wkv6_chunks.cu.
struct wkv6_chunk {
  union {
    wkv6_vectors plain;
    wkv6_late_comers late;
  };
  matrix r, k, v;  ///< R, K and V
  union {
    float decay_of_half[2 * blocks][side];  ///< over the tokens of half a block
    matrix_block below[pairs_of_blocks];    ///< R K^T below its diagonal blocks, which replaces the decays
  };
  float own[blocks][16][20];  ///< the diagonal blocks, [token, earlier token], not rounded; row sizes avoid conflicts
  float decay_of_block[blocks][side];
  float whole[side];                                ///< G_64
  operand_pair from_start[blocks][side / 2];        ///< decay from the beginning of the chunk to that of a block
  operand_pair between[pairs_of_blocks][side / 2];  ///< decay from the end of a block to the beginning of a later one
  float scale[side];                                ///< of a token's r
  float weights[wkv6_weight_count][spread_channels];
};

/// The weight that this thread puts into shared memory.
__device__ inline float load_wkv6_weight(const wkv6_parameters& of) {
  const unsigned which = threadIdx.x / side;
  const float* const from = which == decay_weight       ? of.decay
                            : which == bonus_weight     ? of.bonus
                            : which == wkv6_norm_weight ? of.ln_x_weight
                                                        : of.ln_x_bias;
  return from[blockIdx.x * head_size + threadIdx.x % side];
}

/// exp(-exp(x)); exp of a large argument is infinite, which makes it 0.
__device__ inline float quick_decay(float x) { return power_of_two(-log2_e * power_of_two(log2_e * x)); }

/// The largest power of two that is not above a positive number, within limits whose squares and inverses are normal.
__device__ inline float power_below(float number) {
  constexpr std::uint32_t smallest = 0x33800000, largest = 0x53800000;  // 2^-24 and 2^40
  const std::uint32_t power = float_to_bits(number) & 0x7f800000;
  return bits_to_float(power < smallest ? smallest : power > largest ? largest : power);
}
__device__ inline float inverse_of_power(float power) { return bits_to_float(0x7f000000 - float_to_bits(power)); }

/// The largest absolute value over the lanes of a token.
__device__ inline float couple_largest(const of_couple& values) {
  float largest = 0;
  for (const float value : values) largest = fmaxf(largest, fabsf(value));
  for (unsigned mask = couple_lanes / 2; mask > 0; mask /= 2) largest = fmaxf(largest, shuffle_xor(largest, mask));
  return largest;
}

__device__ inline void store_spread(float* to, unsigned first, const of_couple& values) {
#pragma unroll
  for (unsigned i = 0; i < couple_channels; i += 4)
    store_packet(to + spread(first + i), packet<float>{{values[i], values[i + 1], values[i + 2], values[i + 3]}});
}
__device__ inline void store_as_operands(operand_pair* at, const of_couple& values) {
  couple_operands operands;
#pragma unroll
  for (unsigned c = 0; c < couple_channels; c += 2) operands.values[c / 2] = to_operands(values[c], values[c + 1]);
  store_operands(at, operands);
}

/// Products of the decays of blocks. A thread computes one channel; `block` is the later one of the pairs.
__device__ inline void make_wkv6_decays(wkv6_chunk& s, const float (&of_block)[blocks]) {
  const unsigned c = threadIdx.x % side, block = threadIdx.x / side;
  const auto store = [&](operand_pair* to, float own) {
    const float other = shuffle_xor(own, 1);
    if (c % 2 == 0) to[c / 2] = to_operands(own, other);
  };
#pragma unroll
  for (unsigned i = 0; i < blocks; ++i) {
    if (i != block) continue;  // the same block in all lanes of a warp
    s.decay_of_block[i][c] = of_block[i];
    float product = 1;
#pragma unroll
    for (unsigned j = i; j > 0; --j) {
      store(s.between[lower_blocks::place_below(i, j - 1)], product);
      product *= of_block[j - 1];
    }
    store(s.from_start[i], product);
    if (i + 1 == blocks) s.whole[c] = product * of_block[i];
  }
}

/// A lane has eight channels of two adjacent tokens; a warp has four such couples.
template <typename Element, bool in_parts>
__device__ void make_wkv6_vectors(const wkv6_parameters& of, const run_chunk& chunk, float own_weight, wkv6_chunk& s) {
  const lane_place at;
  const unsigned couple = at.lane / couple_lanes % 4, first = at.lane % couple_lanes * couple_channels;
  const unsigned token = half_tokens * at.warp + 2 * couple;
  const std::uint32_t channel = blockIdx.x * head_size + first;
  channels_on_their_way<gate_type<Element>> w_out[2];
  channels_on_their_way<Element> r[2], k[2], v[2];
#pragma unroll
  for (unsigned i = 0; i < 2; ++i) {
    // Beyond the chunk: its last token, whose result is not used.
    const std::uint32_t row = chunk.first_row + (token + i < chunk.rows ? token + i : chunk.rows - 1);
    if (of.w_out.data) w_out[i].load(gate_place<Element>(of.w_out, row, channel));
    load_gemm<in_parts>(of.k, row, channel, k[i]);
    load_gemm<in_parts>(of.r, row, channel, r[i]);
    load_gemm<in_parts>(of.v, row, channel, v[i]);
  }
  s.weights[threadIdx.x / side][spread(threadIdx.x % side)] = own_weight;
  __syncthreads();

  const auto weight = [&](wkv6_weight name, unsigned c) { return s.weights[name][spread(first) + spread(c)]; };
  of_couple before, after;  // the decay over the tokens of half a block before and after this couple
  {
    const bool is_second = couple % 2 != 0, is_later = couple / 2 != 0;
    of_couple w[2], all;
#pragma unroll
    for (unsigned c = 0; c < couple_channels; ++c) {
#pragma unroll
      for (unsigned i = 0; i < 2; ++i) {
        w[i][c] = weight(decay_weight, c);
        if (of.w_out.data) w[i][c] = quick_decay(w[i][c] + w_out[i](c));
        if (token + i >= chunk.rows) w[i][c] = 1;  // so that the state does not change
      }
      const float own = w[0][c] * w[1][c], other = shuffle_xor(own, 8), two = own * other;
      const float others = shuffle_xor(two, 16);
      before[c] = (is_second ? other : 1) * (is_later ? others : 1);
      after[c] = (is_second ? 1 : other) * (is_later ? 1 : others);
      all[c] = two * others;
    }
    for (unsigned i = 0; i < 2; ++i) store_spread(s.plain.w[token + i], first, w[i]);
    if (couple == 0) store_channels(&s.decay_of_half[at.warp][first], all);
  }
  __syncthreads();
  {
    of_couple other;  // of the other half
    load_channels(&s.decay_of_half[at.warp ^ 1][first], other);
    const bool is_first_half = at.warp % 2 == 0;
#pragma unroll
    for (unsigned c = 0; c < couple_channels; ++c) {
      before[c] *= is_first_half ? 1 : other[c];
      after[c] *= is_first_half ? other[c] : 1;
    }
    float of_block[blocks];
#pragma unroll
    for (unsigned i = 0; i < blocks; ++i)
      of_block[i] = s.decay_of_half[2 * i][threadIdx.x % side] * s.decay_of_half[2 * i + 1][threadIdx.x % side];
    make_wkv6_decays(s, of_block);
  }

#pragma unroll
  for (unsigned i = 0; i < 2; ++i) {
    const unsigned t = token + i;
    if (chunk.rows < chunk_tokens && t >= chunk.rows) r[i].clear(), k[i].clear(), v[i].clear();
    of_couple scaled, w;
    load_spread(s.plain.w[token + 1 - i], first, w);  // of the other token
    r[i].read(scaled);
    const float scale_r = inverse_of_power(power_below(couple_largest(scaled)));
    float bonus = 0;
    {
      of_couple scaled_k;
      k[i].read(scaled_k);
      const float power = power_below(couple_largest(scaled_k)), scale_k = inverse_of_power(power);
#pragma unroll
      for (unsigned c = 0; c < couple_channels; ++c) {
        scaled[c] *= scale_r, scaled_k[c] *= scale_k;
        bonus = multiply_add(scaled[c] * scaled_k[c], weight(bonus_weight, c), bonus);
      }
      store_as_operands(s.plain.k.at(t, first), scaled_k);
#pragma unroll
      for (unsigned c = 0; c < couple_channels; ++c) scaled_k[c] *= i == 0 ? after[c] * w[c] : after[c];
      store_as_operands(s.k.at(t, first), scaled_k);
      v[i].read(scaled_k);
#pragma unroll
      for (float& value : scaled_k) value *= power * value_scale;
      store_as_operands(s.v.at(t, first), scaled_k);
    }
    bonus = couple_sum(bonus);
    if (at.lane % couple_lanes == 0) s.own[t / 16][t % 16][t % 16] = bonus, s.scale[t] = scale_r;
    store_as_operands(s.plain.r.at(t, first), scaled);
#pragma unroll
    for (unsigned c = 0; c < couple_channels; ++c) scaled[c] *= i == 0 ? before[c] : before[c] * w[c];
    store_as_operands(s.r.at(t, first), scaled);
  }
}

}  // namespace skein::kernels::gpu
