#pragma once
#include "kernels/gpu/time_mix/chunks/chunk_vectors.cuh"

/// The matrix products of a chunk, with the names of wkv_chunks.cu.
namespace skein::kernels::gpu {

/// A thread computes one channel of one block.
__device__ inline void make_decays(shared_chunk& s) {
  const unsigned c = threadIdx.x % side, block = threadIdx.x / side;
  float sum[warps + 1];
  sum[0] = 0;
  for (unsigned i = 0; i < warps; ++i) sum[i + 1] = sum[i] + s.log_decay[i][c];
  const auto middle = [&](unsigned of) { return sum[2 * of + 1]; };
#pragma unroll
  for (unsigned i = 0; i < blocks; ++i) {
    if (i != block) continue;
    s.from_start[i][c] = power_of_two(middle(i));
    s.to_next[i][c] = power_of_two((i + 1 < blocks ? middle(i + 1) : sum[warps]) - middle(i));
    if (i == 0) s.whole[c] = power_of_two(sum[warps]);
#pragma unroll
    for (unsigned j = 0; j < i; ++j) {
      const float own = power_of_two(middle(i) - middle(j)), other = shuffle_xor(own, 1);
      if (c % 2 == 0) s.between[lower_blocks::place_below(i, j)][c / 2] = to_operands(own, other);
    }
  }
}

/// Of 16 x 16 products, keeps those with earlier tokens, and with `with_token` those with the token itself.
template <bool on_diagonal>
__device__ void keep_gemms(matrix_block& to, const tile_c (&c)[2], bool with_token, const lane_place& at) {
#pragma unroll
  for (unsigned n = 0; n < 2; ++n)
    for (unsigned row = 0; row < 2; ++row) {
      const unsigned token = at.g + 8 * row, before = 8 * n + 2 * at.t;
      float pair[2] = {c[n][2 * row], c[n][2 * row + 1]};
      if (on_diagonal)
        for (unsigned i = 0; i < 2; ++i)
          if (before + i > token || (before + i == token && !with_token)) pair[i] = 0;
      to.at(token, 8 * n)[at.t] = to_operands(pair[0], pair[1]);
    }
}

/// T for the interactions of 16 tokens, below its diagonal of ones. Each lane computes one column.
__device__ inline void invert_block(const float (&l)[16][16], matrix_block& to, const lane_place& at) {
  const unsigned own = at.lane % 16;
  float column[16];
#pragma unroll
  for (unsigned t = 0; t < 16; ++t) column[t] = t == own ? 1 : 0;
#pragma unroll
  for (unsigned i = 0; i < 15; ++i)
#pragma unroll
    for (unsigned t = i + 1; t < 16; ++t) column[t] = multiply_add(l[i][t], column[i], column[t]);
  operand_pair pairs[16];
#pragma unroll
  for (unsigned t = 0; t < 16; ++t) {
    if (t == own) column[t] = 0;
    pairs[t] = to_operands(column[t], shuffle_xor(column[t], 1));
  }
  if (own % 2 != 0 || at.lane >= 16) return;
#pragma unroll
  for (unsigned t = 0; t < 16; ++t) to.at(t, own / 8 * 8)[own % 8 / 2] = pairs[t];
}

/// Products of 16 tokens with themselves. Two warps share them: one multiplies A and R by B, the other by K.
__device__ inline void relate_block(shared_chunk& s, unsigned block, bool with_k, const lane_place& at) {
  const matrix& other = with_k ? s.scaled.k : s.scaled.b;
  tile_c of_a[2] = {}, of_r[2] = {};
#pragma unroll
  for (unsigned i = 0; i < blocks; ++i) {
    tile_a a, r;
    tile_b b[2];
    load_left(s.scaled.a, 16 * block, 16 * i, at.lane, a);
    load_left(s.scaled.r, 16 * block, 16 * i, at.lane, r);
    load_right_transposed(other, 16 * block, 16 * i, at.lane, b);
    for (unsigned n = 0; n < 2; ++n) {
      multiply_tiles(of_a[n], a, b[n]);
      multiply_tiles(of_r[n], r, b[n]);
    }
  }
  keep_gemms<true>((with_k ? s.rk : s.rb).diagonal[block], of_r, !with_k, at);
  if (with_k) return keep_gemms<true>(s.ak.diagonal[block], of_a, false, at);
#pragma unroll
  for (unsigned n = 0; n < 2; ++n)
    for (unsigned i = 0; i < 4; ++i) s.own[block][8 * n + 2 * at.t + i % 2][at.g + i / 2 * 8] = of_a[n][i];
  warp_barrier();
  invert_block(s.own[block], s.ab.diagonal[block], at);
}

/// Products of 16 tokens with 16 earlier ones; `pair` numbers both as lower_blocks::place_below does.
__device__ inline void relate_pair(shared_chunk& s, unsigned pair, bool with_k, const lane_place& at) {
  const unsigned row = row_of_pair(pair), column = pair - row * (row - 1) / 2;
  const matrix& other = with_k ? s.scaled.k : s.scaled.b;
  const operand_pair* const decay = s.between[pair] + at.t;
  tile_c of_a[2] = {}, of_r[2] = {};
#pragma unroll
  for (unsigned i = 0; i < blocks; ++i) {
    tile_a a, r;
    tile_b b[2];
    load_left(s.scaled.a, 16 * row, 16 * i, at.lane, a);
    load_left(s.scaled.r, 16 * row, 16 * i, at.lane, r);
    load_right_transposed(other, 16 * column, 16 * i, at.lane, b);
    for (unsigned j = 0; j < 4; ++j) {
      const operand_pair by = decay[8 * i + j / 2 * 4];
      a[j] = multiply_pairs(a[j], by), r[j] = multiply_pairs(r[j], by);
    }
    for (unsigned n = 0; n < 2; ++n) {
      multiply_tiles(of_a[n], a, b[n]);
      multiply_tiles(of_r[n], r, b[n]);
    }
  }
  keep_gemms<false>((with_k ? s.ak : s.ab).below[pair], of_a, false, at);
  keep_gemms<false>((with_k ? s.rk : s.rb).below[pair], of_r, false, at);
}

/// The warps that do not invert a block compute all pairs of blocks.
__device__ inline void relate_tokens(shared_chunk& s, const lane_place& at) {
  const unsigned own = at.warp % blocks;
  const bool with_k = at.warp >= blocks;
  relate_block(s, own, with_k, at);
  if (!with_k) return;
#pragma unroll 1
  for (unsigned i = own; i < 2 * pairs_of_blocks; i += blocks)
    relate_pair(s, i % pairs_of_blocks, i >= pairs_of_blocks, at);
}

/// The transpose of a block of 16 tokens and 16 channels, as results, with scaled channels.
__device__ inline void load_columns(const matrix& from, unsigned block, unsigned first, const float (&scale)[side],
                                    const lane_place& at, tile_c (&to)[2]) {
  tile_a loaded;
  load_left_transposed(from, 16 * block, first, at.lane, loaded);
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    float pair[2];
    to_floats(loaded[i], pair[0], pair[1]);
    const float by = scale[first + at.g + i % 2 * 8];
    for (unsigned j = 0; j < 2; ++j) to[i / 2][i % 2 * 2 + j] = pair[j] * by;
  }
}

/// 16 channels, as rows, by all tokens.
using token_columns = tile_c[blocks][2];

/// x T^T, 16 tokens at a time: solved tokens are applied to all later ones.
__device__ inline void solve(const lower_blocks& l, const lane_place& at, token_columns& x, operand_rows& solved) {
#pragma unroll
  for (unsigned block = 0; block < blocks; ++block) {
    tile_a a;
    left_operand(x[block][0], x[block][1], a);
    multiply_block(x[block][0], x[block][1], a, l.of(block, block), at.lane);
    left_operand(x[block][0], x[block][1], solved[block]);
#pragma unroll
    for (unsigned later = block + 1; later < blocks; ++later)
      multiply_block(x[later][0], x[later][1], solved[block], l.of(later, block), at.lane);
  }
}

/// Rows 16 strip .. + 16 of P and of the transpose of Q; they need only W of 16 keys.
__device__ inline void describe_keys(shared_chunk& s, unsigned strip, const lane_place& at) {
  operand_rows w;
  {
    token_columns x;
    for (unsigned block = 0; block < blocks; ++block)
      load_columns(s.scaled.a, block, 16 * strip, s.from_start[block], at, x[block]);
    solve(s.ab, at, x, w);
  }
#pragma unroll
  for (unsigned block = 0; block < blocks; ++block) {
    tile_c q[2];
    load_columns(s.scaled.r, block, 16 * strip, s.from_start[block], at, q);
#pragma unroll
    for (unsigned before = 0; before <= block; ++before)
      multiply_block(q[0], q[1], w[before], s.rb.of(block, before), at.lane);
    store_right(s.q, strip, block, at.lane, q[0], q[1]);
  }
  result_rows p = {};
#pragma unroll
  for (unsigned block = 0; block < blocks; ++block) {
    add_rows(p, w[block], s.scaled.b, block, at);
    scale_columns(p, s.to_next[block], at);
  }
#pragma unroll
  for (unsigned i = 0; i < blocks; ++i) store_right(s.p, strip, i, at.lane, p[2 * i], p[2 * i + 1]);
}

/// U0 and D of 16 values.
__device__ inline void describe_values(shared_chunk& s, unsigned strip, const lane_place& at, result_rows& d) {
  operand_rows u;
  {
    token_columns x = {};
#pragma unroll
    for (unsigned before = 0; before < blocks; ++before) {
      tile_a v;
      load_left_transposed(s.v, 16 * before, 16 * strip, at.lane, v);
#pragma unroll
      for (unsigned block = before; block < blocks; ++block)
        multiply_block(x[block][0], x[block][1], v, s.ak.of(block, before), at.lane);
    }
    solve(s.ab, at, x, u);
#pragma unroll
    for (unsigned block = 0; block < blocks; ++block) store_tile(s.u + tile_at(strip, block, at.lane), u[block]);
  }
#pragma unroll
  for (unsigned block = 0; block < blocks; ++block) {
    add_rows(d, u[block], s.scaled.b, block, at);
    tile_a v;
    load_left_transposed(s.v, 16 * block, 16 * strip, at.lane, v);
    add_rows(d, v, s.scaled.k, block, at);
    scale_columns(d, s.to_next[block], at);
  }
}

/// The transpose of Y0 of 16 values.
__device__ inline void read_tokens(const shared_chunk& s, unsigned strip, const lane_place& at, result_rows& y) {
#pragma unroll
  for (unsigned before = 0; before < blocks; ++before) {
    tile_a u, v;
    load_tile(s.u + tile_at(strip, before, at.lane), u);
    load_left_transposed(s.v, 16 * before, 16 * strip, at.lane, v);
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      float pair[2], of_token[2];
      to_floats(v[i], pair[0], pair[1]);
      load_floats(&s.r_k[16 * before + i / 2 * 8 + 2 * at.t], of_token);
      for (unsigned j = 0; j < 2; ++j) {
        float& sum = y[2 * before + i / 2][i % 2 * 2 + j];
        sum = multiply_add(pair[j], of_token[j], sum);
      }
    }
#pragma unroll
    for (unsigned block = before; block < blocks; ++block) {
      multiply_block(y[2 * block], y[2 * block + 1], u, s.rb.of(block, before), at.lane);
      multiply_block(y[2 * block], y[2 * block + 1], v, s.rk.of(block, before), at.lane);
    }
  }
}

/// Adds the part of Y that is read from the state.
__device__ inline void read_state(const shared_chunk& s, unsigned strip, const lane_place& at, result_rows& y) {
  operand_rows state;
#pragma unroll
  for (unsigned i = 0; i < blocks; ++i) load_tile(s.late.state + tile_at(strip, i, at.lane), state[i]);
#pragma unroll
  for (unsigned block = 0; block < blocks; ++block)
    multiply_right(y[2 * block], y[2 * block + 1], state, s.q, block, at.lane);
}

}  // namespace skein::kernels::gpu
