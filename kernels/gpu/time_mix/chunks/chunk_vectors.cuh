#pragma once
#include "kernels/gpu/time_mix/chunks/chunk_block.cuh"
#include "kernels/gpu/time_mix/time_mix_couple.cuh"

/// The shared memory of a chunk of wkv_chunks.cu, and its first contents: the vectors of the tokens, scaled by decays.
namespace skein::kernels::gpu {

inline constexpr unsigned blocks_at_once = 2;

/// A, R, B and K, where the middle of a block has the scale 1.
struct scaled_vectors {
  matrix a, r, b, k;
};
/// What later replaces them: the state before the chunk, as a left operand, and Y, [token, value].
struct late_comers {
  operand_pair state[matrix_pairs];
  float y[side][spread_channels];
};

/// The weights of a head's channels; k_stays is 1 - k_a. The order matters: those up to v0 are inputs of a logistic.
enum weight_name : unsigned { w0, a0, v0, k_k, k_a, k_stays, r_k, ln_x_weight, ln_x_bias, weight_count };

/// Matrices with the names of wkv_chunks.cu.
struct shared_chunk {
  union {
    scaled_vectors scaled;
    late_comers late;
  };
  matrix v;                      ///< V
  lower_blocks ab, ak, rb, rk;   ///< A B^T, ...; the diagonal blocks of the first hold those of T, without its ones
  float own[blocks][16][16];     ///< the diagonal blocks of A B^T, not rounded, by column
  float log_decay[warps][side];  ///< of half a block, base 2
  operand_pair between[pairs_of_blocks][side / 2];        ///< decay from the middle of a block to that of a later one
  float from_start[blocks][side], to_next[blocks][side];  ///< decay to a block's middle, and on to the next one's;
                                                          ///< from the last middle to the chunk's end
  float whole[side];                                      ///< G_64
  float r_k[side], bonus[side];                           ///< r k^T and r k^T weighted, by token
  float weights[threads * 4 / side][spread_channels];     ///< of the head
  operand_pair p[matrix_pairs], q[matrix_pairs];          ///< P and the transpose of Q, as right operands
  operand_pair u[matrix_pairs];                           ///< the transpose of U0, as a left one
};
static_assert(blocks_at_once * (sizeof(shared_chunk) + 1024) <= 228 * 1024 ||
              sizeof(operand_pair) > 4);  // the system reserves 1 KiB per block

/// All weights of a head's channels, a packet per thread, ready for use: inputs of a logistic are multiplied by
/// -log2(e).
struct weight_packet {
  float values[4];

  __device__ weight_packet(const time_mix_parameters& of) {
    const float* from = of.w0;
    const auto take = [&](weight_name name, const float* weights) {
      if (which() == name) from = weights;
    };
    take(a0, of.a0), take(v0, of.first_layer ? of.a0 : of.v0), take(k_k, of.k_k), take(k_a, of.k_a);
    take(k_stays, of.k_a), take(r_k, of.r_k), take(ln_x_weight, of.ln_x_weight), take(ln_x_bias, of.ln_x_bias);
    load_floats(from + blockIdx.x * head_size + first(), values);
  }
  __device__ void store(shared_chunk& s) {
    // The surplus threads store values that are never read: that is cheaper than a branch.
    static_assert(weight_count * side / 4 <= threads);
#pragma unroll
    for (float& value : values) value = which() <= v0 ? -log2_e * value : which() == k_stays ? 1 - value : value;
    store_floats(&s.weights[which()][spread(first())], values);
  }
  __device__ static unsigned which() { return threadIdx.x / (side / 4); }
  __device__ static unsigned first() { return threadIdx.x % (side / 4) * 4; }
};

/// A lane has eight channels of two adjacent tokens; a warp has four such couples.
template <typename Element, bool in_parts>
__device__ void make_vectors(const time_mix_parameters& of, const run_chunk& chunk, weight_packet& weights,
                             shared_chunk& s) {
  const lane_place at;
  const unsigned couple = at.lane / couple_lanes % 4, first = at.lane % couple_lanes * couple_channels;
  const unsigned token = half_tokens * at.warp + 2 * couple;
  const std::uint32_t channel = blockIdx.x * head_size + first;
  const auto row = [&](unsigned i) {  // beyond the chunk: its last token, whose result is not used
    return chunk.first_row + (token + i < chunk.rows ? token + i : chunk.rows - 1);
  };
  channels_on_their_way<gate_type<Element>> w_out[2];
#pragma unroll
  for (unsigned i = 0; i < 2; ++i) w_out[i].load(gate_place<Element>(of.w_out, row(i), channel));
  couple_inputs<Element> in[2];
#pragma unroll
  for (unsigned i = 0; i < 2; ++i) in[i].template load<in_parts>(of, row(i), channel);
  weights.store(s);
  __syncthreads();

  const auto weight = [&](weight_name name, unsigned c) { return s.weights[name][spread(first) + spread(c)]; };
  const float of_other = couple % 2 == 0 ? 0 : 1, of_others = couple / 2 == 0 ? 0 : 1,
              of_all = at.warp % 2 == 0 ? 1 : 0;
  of_couple log_w[2], before, all;
#pragma unroll
  for (unsigned c = 0; c < couple_channels; ++c) {
#pragma unroll
    for (unsigned i = 0; i < 2; ++i)  // exp(-0.5) log2(e)
      log_w[i][c] = (token + i < chunk.rows ? -0.87503876f : 0) *
                    quick_logistic(multiply_add(w_out[i](c), -log2_e, weight(w0, c)));
    // The sum over the warp's tokens before this couple, from the place where the scale is 1: the end of the first half
    // of a block, or the beginning of the second.
    const float own = log_w[0][c] + log_w[1][c], other = shuffle_xor(own, 8), two = own + other;
    const float others = shuffle_xor(two, 16);
    all[c] = two + others;
    before[c] = multiply_add(-of_all, all[c], multiply_add(of_others, others, of_other * other));
  }
  if (couple == 0) store_channels(&s.log_decay[at.warp][first], all);

#pragma unroll
  for (unsigned i = 0; i < 2; ++i) {
    couple_inputs<Element>& from = in[i];
    const unsigned t = token + i;
    const bool there = t < chunk.rows;
    if (chunk.rows < chunk_tokens && !there) from.clear();  // so that the state does not change
    {
      of_couple v;
      couple_operands of_v;
      from.v.read(v);
      if (!of.first_layer) {
#pragma unroll
        for (unsigned c = 0; c < couple_channels; ++c)
          v[c] = multiply_add(from.v_first(c) - v[c],
                              quick_logistic(multiply_add(from.v_out(c), -log2_e, weight(v0, c))), v[c]);
      } else if (there) {
        store_channels(static_cast<Element*>(of.v_first) + static_cast<std::size_t>(row(i)) * of.width + channel, v);
      }
#pragma unroll
      for (unsigned c = 0; c < couple_channels; c += 2)
        of_v.values[c / 2] = to_operands(v[c] * value_scale, v[c + 1] * value_scale);
      store_operands(s.v.at(t, first), of_v);
    }
    of_couple rate, kk, k;
    float squares = 0, bonus = 0, diagonal = 0;
#pragma unroll
    for (unsigned c = 0; c < couple_channels; ++c) {
      rate[c] = quick_logistic(multiply_add(from.a_out(c), -log2_e, weight(a0, c)));
      kk[c] = from.k(c) * weight(k_k, c);
      k[c] = from.k(c) * multiply_add(rate[c], weight(k_a, c), weight(k_stays, c));
      squares = multiply_add(kk[c], kk[c], squares);
      const float gemm = from.r(c) * k[c];
      diagonal += gemm;
      bonus = multiply_add(gemm, weight(r_k, c), bonus);
    }
    squares = couple_sum(squares), bonus = couple_sum(bonus), diagonal = couple_sum(diagonal);
    if (at.lane % couple_lanes == 0) s.r_k[t] = diagonal, s.bonus[t] = bonus;

    const float per_length = inverse_root(fmaxf(squares, 1e-24f));
    couple_operands of_a, of_r, of_b, of_k;
#pragma unroll
    for (unsigned c = 0; c < couple_channels; c += 2) {
      float a[2], r[2], b[2];
#pragma unroll
      for (unsigned e = 0; e < 2; ++e) {
        const float unit = kk[c + e] * per_length;
        a[e] = -unit * power_of_two(before[c + e]);
        before[c + e] += log_w[i][c + e];
        const float growth = power_of_two(-before[c + e]);
        r[e] = from.r(c + e) * power_of_two(before[c + e]);
        b[e] = rate[c + e] * unit * growth;
        k[c + e] *= growth;
      }
      of_a.values[c / 2] = to_operands(a[0], a[1]);
      of_r.values[c / 2] = to_operands(r[0], r[1]);
      of_b.values[c / 2] = to_operands(b[0], b[1]);
      of_k.values[c / 2] = to_operands(k[c], k[c + 1]);
    }
    store_operands(s.scaled.a.at(t, first), of_a);
    store_operands(s.scaled.r.at(t, first), of_r);
    store_operands(s.scaled.b.at(t, first), of_b);
    store_operands(s.scaled.k.at(t, first), of_k);
  }
}

}  // namespace skein::kernels::gpu
