#pragma once
#include "kernels/gpu/time_mix/chunks/chunk_states.cuh"
#include "kernels/gpu/time_mix/chunks/wkv6_chunk_vectors.cuh"

/// The matrix products of a chunk, with the names of wkv6_chunks.cu.
namespace skein::kernels::gpu {

/// Each of the eight lanes of a token has a summand of eight sums; lane i gets sum i.
__device__ inline float sum_of_lane(float (&of)[couple_lanes], unsigned lane) {
#pragma unroll
  for (unsigned mask = couple_lanes / 2; mask > 0; mask /= 2)
#pragma unroll
    for (unsigned i = 0; i < mask; ++i) {
      const bool upper = (lane & mask) != 0;
      const float keep = upper ? of[i + mask] : of[i], give = upper ? of[i] : of[i + mask];
      of[i] = keep + shuffle_xor(give, mask);
    }
  return of[0];
}

/// r (w ... w) k of the tokens of a block with earlier ones of it. Two warps share a block. Eight lanes compute the
/// columns of two tokens, `column` and 15 - `column`: they decay k of the token step by step, 15 steps together.
__device__ inline void relate_block(wkv6_chunk& s, const lane_place& at) {
  const unsigned block = at.warp / 2, column = at.warp % 2 * 4 + at.lane / couple_lanes % 4;
  const unsigned lane = at.lane % couple_lanes, first = lane * couple_channels;
  constexpr unsigned steps = 15;
  const unsigned of_first = steps - column;  // steps of the first column
  const auto later_token = [&](unsigned step) { return step < of_first ? column + 1 + step : step + 1; };
  of_couple decayed;
#pragma unroll 1
  for (unsigned done = 0; done < steps; done += couple_lanes) {
    float sums[couple_lanes];
#pragma unroll
    for (unsigned i = 0; i < couple_lanes; ++i) {
      const unsigned step = done + i, token = 16 * block + (step < steps ? later_token(step) : steps);
      if (step == 0 || step == of_first) {
        channels_of_operands k;
        k.load(s.plain.k.at(16 * block + (step == 0 && column < steps ? column : steps - column), first));
#pragma unroll
        for (unsigned c = 0; c < couple_channels; ++c) decayed[c] = k.values[c];
      } else {
        of_couple w;
        load_spread(s.plain.w[token - 1], first, w);
#pragma unroll
        for (unsigned c = 0; c < couple_channels; ++c) decayed[c] *= w[c];
      }
      channels_of_operands r;
      r.load(s.plain.r.at(token, first));
      sums[i] = 0;
#pragma unroll
      for (unsigned c = 0; c < couple_channels; ++c) sums[i] = multiply_add(r.values[c], decayed[c], sums[i]);
    }
    const float sum = sum_of_lane(sums, lane);
    const unsigned step = done + lane;
    if (step < steps) s.own[block][later_token(step)][step < of_first ? column : steps - column] = sum;
  }
}

/// R K^T of 16 tokens with 16 earlier ones; `pair` numbers both as lower_blocks::place_below does.
__device__ inline void relate_pair(wkv6_chunk& s, unsigned pair, const lane_place& at) {
  const unsigned row = row_of_pair(pair), column = pair - row * (row - 1) / 2;
  const operand_pair* const decay = s.between[pair] + at.t;
  tile_c sums[2] = {};
#pragma unroll
  for (unsigned i = 0; i < blocks; ++i) {
    tile_a r;
    tile_b k[2];
    load_left(s.r, 16 * row, 16 * i, at.lane, r);
    load_right_transposed(s.k, 16 * column, 16 * i, at.lane, k);
    for (unsigned j = 0; j < 4; ++j) r[j] = multiply_pairs(r[j], decay[8 * i + j / 2 * 4]);
    for (unsigned n = 0; n < 2; ++n) multiply_tiles(sums[n], r, k[n]);
  }
#pragma unroll
  for (unsigned n = 0; n < 2; ++n)
    for (unsigned i = 0; i < 2; ++i)
      s.below[pair].at(at.g + 8 * i, 8 * n)[at.t] = to_operands(sums[n][2 * i], sums[n][2 * i + 1]);
}

/// D of 16 values.
__device__ inline void describe_values(const wkv6_chunk& s, unsigned strip, const lane_place& at, result_rows& d) {
#pragma unroll
  for (unsigned block = 0; block < blocks; ++block) {
    if (block > 0) scale_columns(d, s.decay_of_block[block], at);
    tile_a v;
    load_left_transposed(s.v, 16 * block, 16 * strip, at.lane, v);
    add_rows(d, v, s.k, block, at);
  }
}

/// The transpose of a diagonal block of lower_or_equal(R K^T) as two right operands.
__device__ inline void load_own(const float (&own)[16][20], const lane_place& at, tile_b (&to)[2]) {
#pragma unroll
  for (unsigned n = 0; n < 2; ++n)
#pragma unroll
    for (unsigned j = 0; j < 2; ++j) {
      const unsigned token = 8 * n + at.g, before = 8 * j + 2 * at.t;
      float pair[2];
      load_floats(&own[token][before], pair);
      to[n][j] = to_operands(before <= token ? pair[0] : 0, before + 1 <= token ? pair[1] : 0);
    }
}

/// The transpose of lower_or_equal(R K^T) V of 16 values.
__device__ inline void read_tokens(const wkv6_chunk& s, unsigned strip, const lane_place& at, result_rows& y) {
#pragma unroll
  for (unsigned before = 0; before < blocks; ++before) {
    tile_a v;
    tile_b own[2];
    load_left_transposed(s.v, 16 * before, 16 * strip, at.lane, v);
    load_own(s.own[before], at, own);
    for (unsigned n = 0; n < 2; ++n) multiply_tiles(y[2 * before + n], v, own[n]);
#pragma unroll
    for (unsigned block = before + 1; block < blocks; ++block)
      multiply_block(y[2 * block], y[2 * block + 1], v, s.below[lower_blocks::place_below(block, before)], at.lane);
  }
}

/// Adds the part of Y that is read from the state.
__device__ inline void read_state(const wkv6_chunk& s, unsigned strip, const lane_place& at, result_rows& y) {
#pragma unroll
  for (unsigned i = 0; i < blocks; ++i) {
    tile_a state;
    load_tile(s.late.state + tile_at(strip, i, at.lane), state);
#pragma unroll
    for (unsigned block = 0; block < blocks; ++block) {
      tile_b r[2];
      load_right_transposed(s.r, 16 * block, 16 * i, at.lane, r);
      for (unsigned n = 0; n < 2; ++n) {
        if (block > 0)
          for (unsigned j = 0; j < 2; ++j) r[n][j] = multiply_pairs(r[n][j], s.from_start[block][8 * i + 4 * j + at.t]);
        multiply_tiles(y[2 * block + n], state, r[n]);
      }
    }
  }
}

}  // namespace skein::kernels::gpu
