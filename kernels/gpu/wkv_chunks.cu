// Long runs, 64 tokens at a time, on tensor cores.
//
// With u_t = -S kk and b_t = a * kk of token t, S_t = S_{t-1} diag(w_t) + u_t b_t^T + v_t k_t^T. Let G_t be the product
// of w up to t within a chunk and S the state before the chunk. Then, with rows of tokens
//   A_t = -kk_t * G_{t-1}    R_t = r_t * G_t    B_t = b_t / G_t    K_t = k_t / G_t
// u and y are, where lower() keeps what is before the token, and lower_or_equal() the token too,
//   U = A S^T + lower(A B^T) U + lower(A K^T) V
//   Y = R S^T + lower_or_equal(R B^T) U + lower_or_equal(R K^T) V
// and the state after the chunk is (S + U^T B + V^T K) diag(G_64). U stands on both sides, but the matrix before it is
// strictly lower: with T = (I - lower(A B^T))^-1, U = W S^T + U0, where W = T A and U0 = T lower(A K^T) V. So
//   Y  = Q S^T + Y0            Q = R + lower_or_equal(R B^T) W    Y0 = lower_or_equal(R B^T) U0 + lower_or_equal(R K^T)
//   V S' = S diag(G_64) + S P + D   P = W^T B diag(G_64)            D  = (U0^T B + V^T K) diag(G_64)
// P, Q, D and Y0 need no state: a block for each chunk and head makes them (describe_kernel). What is left to do in
// order is one product a chunk (carry_kernel); rows of S need each other nowhere, so a warp takes 16 of them. Y, norm,
// bonus and gate are again each chunk's own (finish_kernel).
//
// A decay is above 0.545, so 1 / G_64 is below 10^17: no fp32 and no tf32 overflows, and scaling loses no bits. In
// S diag(G_64) the state keeps all its bits; only what tokens take out of it and read from it goes through operands.
#include "kernels/gpu/wkv_chunks.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/device/head_state.cuh"
#include "kernels/gpu/device/matrix_tiles.cuh"
#include "kernels/gpu/device/time_mix_token.cuh"

namespace skein::kernels::gpu {

namespace {

static_assert(head_size == 64 && chunk_tokens == 64);
constexpr unsigned side = matrix_side;  // of all matrices here: tokens or channels

// ---- plan ----

constexpr unsigned plan_threads = 256;

__host__ __device__ std::uint32_t chunks_of(const sequence_run& run) {
  return run.rows < chunked_rows_min ? 0 : (run.rows + chunk_tokens - 1) / chunk_tokens;
}

__global__ void __launch_bounds__(plan_threads) plan_kernel(device_batch rows, chunk_list list) {
  __shared__ std::uint32_t chunks[plan_threads];
  chunk_list::counts done;
  for (std::uint32_t first = 0; first < rows.counts->runs; first += plan_threads) {
    const std::uint32_t i = first + threadIdx.x;
    sequence_run run{};
    if (i < rows.counts->runs) run = rows.runs[i];
    __syncthreads();  // nobody still reads the counts before
    chunks[threadIdx.x] = chunks_of(run);
    __syncthreads();
    chunk_list::counts before = done;
    for (unsigned j = 0; j < plan_threads; ++j) {
      const chunk_list::counts one{chunks[j], chunks[j] > 0 ? 1u : 0u};
      done.chunks += one.chunks, done.runs += one.runs;
      if (j < threadIdx.x) before.chunks += one.chunks, before.runs += one.runs;
    }
    if (chunks[threadIdx.x] == 0) continue;
    list.runs[before.runs] = {run.slot, before.chunks, chunks[threadIdx.x]};
    for (std::uint32_t c = 0; c < chunks[threadIdx.x]; ++c) {
      const std::uint32_t taken = c * chunk_tokens, left = run.rows - taken;
      list.chunks[before.chunks + c] = {run.first_row + taken, left < chunk_tokens ? left : chunk_tokens};
    }
  }
  if (threadIdx.x == 0) *list.count = done;
}

// ---- describe: what a chunk does to any state ----

constexpr unsigned threads = 256;
/// Six matrices whose names are those of the beginning. Two blocks fit a multiprocessor of sm_90.
struct alignas(16) shared_chunk {
  matrix a;        ///< A; then W
  matrix r;        ///< R; then below the diagonal and on it R B^T, above it the transpose of R K^T
  matrix b, k, v;  ///< B, K, V
  matrix l;        ///< log2 w; then below the diagonal A B^T (its diagonal blocks become those of T), above it the
                   ///< transpose of A K^T; then U0
  float decay[side], r_k[side];  ///< G_64, by channel; r k^T, by token
  float sums[threads / side][side];
};
static_assert(2 * (sizeof(shared_chunk) + 1024) <= 228 * 1024);  // 1 KiB of each block is the system's

template <typename Element, bool in_parts>
__device__ void make_vectors(const time_mix_parameters& of, const run_chunk& chunk, gate_type<Element>* bonus,
                             shared_chunk& s) {
  constexpr unsigned warps = threads / warp_width;
  constexpr unsigned at_once = in_parts ? 2 : 4;  // tokens whose inputs are on the way
  const lane_place at;
  const std::uint32_t first = at.lane * lane_channels, channel = blockIdx.x * head_size + first;
  const head_weights weights = load_weights(of, channel);
  for (unsigned next = at.warp; next < chunk_tokens; next += at_once * warps) {
    token_inputs in[at_once];
#pragma unroll
    for (unsigned i = 0; i < at_once; ++i) {
      const unsigned t = next + i * warps;  // beyond the chunk it is the last token, which nobody uses
      in[i] = load_inputs<Element, in_parts>(of, chunk.first_row + (t < chunk.rows ? t : chunk.rows - 1), channel);
    }
#pragma unroll
    for (unsigned i = 0; i < at_once; ++i) {
      const unsigned t = next + i * warps;
      token_vectors made = make_token<true>(in[i], weights, of.first_layer);
      if (t < chunk.rows) {
        keep_v_first<Element>(of, chunk.first_row + t, channel, in[i].v);
        store_floats(bonus + t * side + first, made.bonus);
      } else {  // all is 0, so no state changes
        made = {};
        for (float& r : in[i].r) r = 0;
      }
      float r_k = 0;
      for (unsigned c = 0; c < lane_channels; ++c) {
        made.log_w[c] *= 1.44269504f;  // log2(e)
        made.kk[c] = -made.kk[c];
        r_k = multiply_add(in[i].r[c], made.k[c], r_k);
      }
      store_floats(&s.l[t][first], made.log_w);
      store_floats(&s.a[t][first], made.kk);
      store_floats(&s.r[t][first], in[i].r);
      store_floats(&s.b[t][first], made.a_kk);
      store_floats(&s.k[t][first], made.k);
      store_floats(&s.v[t][first], made.v);
      r_k = warp_sum(r_k);
      if (at.lane == 0) s.r_k[t] = r_k;
    }
  }
}

/// A thread takes a quarter of the tokens of a channel.
__device__ void scale_by_decay(shared_chunk& s) {
  constexpr unsigned tokens = side * side / threads;
  const unsigned c = threadIdx.x % side, part = threadIdx.x / side, first = part * tokens;
  float sum = 0;
  for (unsigned t = first; t < first + tokens; ++t) sum += s.l[t][c];
  s.sums[part][c] = sum;
  __syncthreads();
  float so_far = 0;
  for (unsigned p = 0; p < part; ++p) so_far += s.sums[p][c];
  float decay = exp2f(so_far);
  for (unsigned t = first; t < first + tokens; ++t) {
    s.a[t][c] = as_tf32(s.a[t][c] * decay);
    so_far += s.l[t][c];
    decay = exp2f(so_far);
    const float growth = exp2f(-so_far);
    s.r[t][c] = as_tf32(s.r[t][c] * decay);
    s.b[t][c] = as_tf32(s.b[t][c] * growth);
    s.k[t][c] = as_tf32(s.k[t][c] * growth);
    s.v[t][c] = as_tf32(s.v[t][c]);
  }
  if (first + tokens == side) s.decay[c] = decay;
}

/// Two warps share 16 rows of A and R: the lower of them multiplies with B, the other with K. Leaves R in `r`.
__device__ void relate_tokens(shared_chunk& s, const lane_place& at, operand_rows& r) {
  const bool with_k = at.warp >= strips;
  const unsigned strip =
      with_k ? 2 * strips - 1 - at.warp : at.warp;  // so that a scheduler gets a short and a long one
  operand_rows a;
  load_paired(s.a, 16 * strip, at, a);
  load_paired(s.r, 16 * strip, at, r);
  __syncthreads();  // from here on R and log2 w are written over
  const matrix& other = with_k ? s.k : s.b;
  for (unsigned block = 0; block <= strip; ++block) {
    tile_c of_a[2] = {}, of_r[2] = {};
#pragma unroll
    for (unsigned tile = 0; tile < tiles; ++tile)
      for (unsigned n = 0; n < 2; ++n) {
        tile_b b;
        load_paired(other, 16 * block + 8 * n, 8 * tile, at, b);
        multiply_tiles(of_a[n], a[tile], b);
        multiply_tiles(of_r[n], r[tile], b);
      }
    for (unsigned n = 0; n < 2; ++n)
      for (unsigned i = 0; i < 4; ++i) {
        const unsigned token = 16 * strip + at.g + i / 2 * 8, before = 16 * block + 8 * n + 2 * at.t + i % 2;
        const unsigned row = with_k ? before : token, column = with_k ? token : before;
        if (before < token) s.l[row][column] = as_tf32(of_a[n][i]);
        if (before < token || (before == token && !with_k)) s.r[row][column] = as_tf32(of_r[n][i]);
      }
  }
}

/// T of 16 tokens among themselves, below its diagonal of ones, in the place of A B^T. A lane makes a column.
__device__ void invert_block(matrix& l, unsigned first, const lane_place& at) {
  const unsigned own = at.lane % 16;
  float column[16];
#pragma unroll
  for (unsigned t = 0; t < 16; ++t) {
    column[t] = t == own ? 1 : 0;
#pragma unroll
    for (unsigned i = 0; i < t; ++i) column[t] = multiply_add(l[first + t][first + i], column[i], column[t]);
  }
  warp_barrier();
  if (at.lane >= 16) return;
#pragma unroll
  for (unsigned t = 0; t < 16; ++t)
    if (t > own) l[first + t][first + own] = as_tf32(column[t]);
}

/// x <- x T^T: 16 tokens after 16; those that are ready are taken to all later ones.
__device__ void solve(const matrix& l, const lane_place& at, token_columns& x) {
#pragma unroll
  for (unsigned block = 0; block < strips; ++block) {
    tile_a a[2];
    for (unsigned i = 0; i < 2; ++i) paired_operand(x[2 * block + i], a[i]);
#pragma unroll
    for (unsigned tile = 0; tile < 2; ++tile)
#pragma unroll
      for (unsigned n = tile; n < 2; ++n) {
        tile_b b;
        load_paired(l, 16 * block + 8 * n, 16 * block + 8 * tile, at, b);
        if (n == tile)
          for (unsigned i = 0; i < 2; ++i) b[i] = 2 * at.t + i < at.g ? b[i] : 0;
        multiply_tiles(x[2 * block + n], a[tile], b);
      }
#pragma unroll
    for (unsigned tile = 2 * block; tile < 2 * block + 2; ++tile) {
      paired_operand(x[tile], a[0]);
#pragma unroll
      for (unsigned n = 2 * block + 2; n < tiles; ++n) {
        tile_b b;
        load_paired(l, 8 * n, 8 * tile, at, b);
        multiply_tiles(x[n], a[0], b);
      }
    }
  }
}

/// x += V^T times the transpose of the part above the diagonal of `m`, for 16 channels of V from `first` on.
__device__ void add_values(const matrix& m, const matrix& v, unsigned first, const lane_place& at, token_columns& x) {
#pragma unroll
  for (unsigned tile = 0; tile < tiles; ++tile) {
    tile_a a;
    load_transposed(v, 8 * tile, first, at, a);
#pragma unroll
    for (unsigned n = tile; n < tiles; ++n) {
      tile_b b;
      load_plain(m, 8 * tile, 8 * n, at, b);
      if (n == tile)
        for (unsigned i = 0; i < 2; ++i) b[i] = at.t + 4 * i < at.g ? b[i] : 0;
      multiply_tiles(x[n], a, b);
    }
  }
}

/// Columns 16 strip .. + 16 of P; W lies in s.a.
__device__ void make_p(const shared_chunk& s, unsigned strip, const lane_place& at, half* to) {
  tile_c p[tiles] = {};  // its transpose
  for (unsigned tile = 0; tile < tiles; ++tile) {
    tile_a a;
    load_transposed(s.b, 8 * tile, 16 * strip, at, a);
#pragma unroll
    for (unsigned n = 0; n < tiles; ++n) {
      tile_b b;
      load_plain(s.a, 8 * tile, 8 * n, at, b);
      multiply_tiles(p[n], a, b);
    }
  }
#pragma unroll
  for (unsigned n = 0; n < tiles; ++n)
    for (unsigned i = 0; i < 4; ++i) p[n][i] *= s.decay[16 * strip + at.g + i / 2 * 8];
  store_right_operand(to, strip, at, p);
}

/// Q of 16 tokens; `r` is R of these.
__device__ void make_q(const shared_chunk& s, unsigned strip, const lane_place& at, const operand_rows& r, half* to) {
  tile_c q[tiles];
#pragma unroll
  for (unsigned n = 0; n < tiles; ++n) q[n][0] = r[n][0], q[n][1] = r[n][2], q[n][2] = r[n][1], q[n][3] = r[n][3];
  for (unsigned tile = 0; tile < 2 * strip + 2; ++tile) {
    tile_a a;
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned token = 16 * strip + at.g + i % 2 * 8, before = 8 * tile + at.t + i / 2 * 4;
      a[i] = before <= token ? s.r[token][before] : 0;
    }
#pragma unroll
    for (unsigned n = 0; n < tiles; ++n) {
      tile_b b;
      load_plain(s.a, 8 * tile, 8 * n, at, b);
      multiply_tiles(q[n], a, b);
    }
  }
  store_right_operand(to, strip, at, q);
}

/// Y0 of 16 values; `u` is U0 of these.
__device__ void make_y(const shared_chunk& s, unsigned strip, const lane_place& at, const token_columns& u, float* to) {
  token_columns y;
  load_columns(s.v, 16 * strip, at, y);
#pragma unroll
  for (unsigned tile = 0; tile < tiles; ++tile)
    for (unsigned i = 0; i < 4; ++i) y[tile][i] *= s.r_k[8 * tile + 2 * at.t + i % 2];
#pragma unroll
  for (unsigned tile = 0; tile < tiles; ++tile) {
    tile_a a;
    paired_operand(u[tile], a);
#pragma unroll
    for (unsigned n = tile; n < tiles; ++n) {
      tile_b b;
      load_paired(s.r, 8 * n, 8 * tile, at, b);
      if (n == tile)
        for (unsigned i = 0; i < 2; ++i) b[i] = 2 * at.t + i <= at.g ? b[i] : 0;
      multiply_tiles(y[n], a, b);
    }
  }
  add_values(s.r, s.v, 16 * strip, at, y);
  store_result(to, strip, at, y);
}

/// 16 rows of D; U0 lies in s.l.
__device__ void make_d(const shared_chunk& s, unsigned strip, const lane_place& at, float* to) {
  tile_c d[tiles] = {};
  for (unsigned tile = 0; tile < tiles; ++tile) {
    tile_a u, v;
    load_transposed(s.l, 8 * tile, 16 * strip, at, u);
    load_transposed(s.v, 8 * tile, 16 * strip, at, v);
#pragma unroll
    for (unsigned n = 0; n < tiles; ++n) {
      tile_b b, k;
      load_plain(s.b, 8 * tile, 8 * n, at, b);
      load_plain(s.k, 8 * tile, 8 * n, at, k);
      multiply_tiles(d[n], u, b);
      multiply_tiles(d[n], v, k);
    }
  }
#pragma unroll
  for (unsigned n = 0; n < tiles; ++n)
    for (unsigned i = 0; i < 4; ++i) d[n][i] *= s.decay[8 * n + 2 * at.t + i % 2];
  store_result(to, strip, at, d);
}

template <typename Element>
__global__ void __launch_bounds__(threads, 2)
    describe_kernel(chunk_list list, chunk_workspace work, time_mix_parameters of) {
  shared_chunk& s = *dynamic_shared<shared_chunk>();
  if (blockIdx.y >= list.count->chunks) return;
  const std::size_t index = std::size_t{blockIdx.y} * gridDim.x + blockIdx.x, place = index * matrix_floats;
  const lane_place at;
  auto* const bonus = static_cast<gate_type<Element>*>(work.bonus) + place;
  if (of.r.parts == 0 && of.k.parts == 0 && of.v.parts == 0)
    make_vectors<Element, false>(of, list.chunks[blockIdx.y], bonus, s);
  else
    make_vectors<Element, true>(of, list.chunks[blockIdx.y], bonus, s);
  __syncthreads();
  scale_by_decay(s);
  __syncthreads();
  operand_rows r;
  relate_tokens(s, at, r);
  __syncthreads();

  // Warps of the first half have 16 keys of W each, those of the second 16 values of U0.
  const unsigned strip = at.warp % strips;
  const bool of_keys = at.warp < strips;
  token_columns x = {};
  if (of_keys) {
    invert_block(s.l, 16 * strip, at);
    load_columns(s.a, 16 * strip, at, x);
  } else {
    add_values(s.l, s.v, 16 * strip, at, x);
  }
  __syncthreads();
  solve(s.l, at, x);
  __syncthreads();
  store_columns(of_keys ? s.a : s.l, 16 * strip, at, x);
  __syncthreads();
  if (of_keys) {
    make_q(s, strip, at, r, work.q + place);
    make_p(s, strip, at, work.p + place);
  } else {
    make_y(s, strip, at, x, work.y + place);
    make_d(s, strip, at, work.d + place);
  }
  if (threadIdx.x < side) work.decay[index * side + threadIdx.x] = s.decay[threadIdx.x];
}

// ---- carry: the state through the chunks of a run ----

constexpr unsigned carry_threads = 64;  // two warps: half of a head's values
constexpr unsigned stages_in_flight = 4;

/// What a block needs of a chunk.
struct alignas(16) chunk_stage {
  half p[matrix_floats];
  float d[matrix_floats / 2];
  float decay[side];
};

template <typename T>
__device__ void copy_part(T* to, const T* from, unsigned count) {
  constexpr unsigned size = packet<T>::size;
  for (unsigned i = threadIdx.x * size; i < count; i += carry_threads * size) copy_async(to + i, from + i);
}
__device__ void copy_stage(chunk_stage& to, const chunk_workspace& work, std::size_t index, unsigned part) {
  const std::size_t place = index * matrix_floats;
  copy_part(to.p, work.p + place, matrix_floats);
  copy_part(to.decay, work.decay + index * side, side);
  copy_part(to.d, work.d + place + part * matrix_floats / 2, matrix_floats / 2);
}

/// Keys 8 tile + 2t and its successor of value g (row 0) or g + 8 (row 1) of 16 values.
template <typename Stored>
__device__ Stored* state_pair(Stored* head, unsigned strip, unsigned tile, unsigned row, const lane_place& at) {
  return head + head_state_index<Stored>(16 * strip + at.g + 8 * row, 8 * tile + 2 * at.t);
}

/// Leaves the states before the chunks, as left operands, in the place of D.
template <typename Stored>
__global__ void __launch_bounds__(carry_threads)
    carry_kernel(chunk_list list, chunk_workspace work, time_mix_parameters of) {
  chunk_stage* const stages = dynamic_shared<chunk_stage>();
  if (blockIdx.y >= list.count->runs) return;
  const chunked_run run = list.runs[blockIdx.y];
  const unsigned heads = gridDim.x / 2, which = blockIdx.x / 2, part = blockIdx.x % 2;
  const lane_place at;
  const auto index = [&](std::uint32_t chunk) { return std::size_t{run.first_chunk + chunk} * heads + which; };
  for (std::uint32_t c = 0; c + 1 < stages_in_flight; ++c) {
    if (c < run.chunks) copy_stage(stages[c], work, index(c), part);
    end_copies();
  }

  Stored* const head = reinterpret_cast<Stored*>(static_cast<char*>(of.state) + run.slot * of.slot_bytes) +
                       static_cast<std::size_t>(which) * head_size * head_size;
  const unsigned strip = 2 * part + at.warp;
  tile_c state[tiles];
#pragma unroll
  for (unsigned tile = 0; tile < tiles; ++tile)
    for (unsigned row = 0; row < 2; ++row) {
      float pair[2];
      load_floats(state_pair(head, strip, tile, row, at), pair);
      state[tile][2 * row] = pair[0], state[tile][2 * row + 1] = pair[1];
    }

  for (std::uint32_t c = 0; c < run.chunks; ++c) {
    await_copies<stages_in_flight - 2>();
    __syncthreads();  // chunk c is there, and nobody still reads the one before
    const std::uint32_t next = c + stages_in_flight - 1;
    if (next < run.chunks) copy_stage(stages[next % stages_in_flight], work, index(next), part);
    end_copies();

    const chunk_stage& chunk = stages[c % stages_in_flight];
    float* const before = work.d + index(c) * matrix_floats;
    operand_rows a;
#pragma unroll
    for (unsigned tile = 0; tile < tiles; ++tile) {
      paired_operand(state[tile], a[tile]);
      store_floats(before + result_at(strip, tile, at.lane), a[tile]);
      float added[4];
      load_floats(chunk.d + result_at(at.warp, tile, at.lane), added);
      for (unsigned i = 0; i < 4; ++i)
        state[tile][i] = multiply_add(state[tile][i], chunk.decay[8 * tile + 2 * at.t + i % 2], added[i]);
    }
    multiply_right(state, a, chunk.p, 0, at.lane);
  }

#pragma unroll
  for (unsigned tile = 0; tile < tiles; ++tile)
    for (unsigned row = 0; row < 2; ++row) {
      const float pair[2] = {state[tile][2 * row], state[tile][2 * row + 1]};
      store_floats(state_pair(head, strip, tile, row, at), pair);
    }
}

// ---- finish: what tokens read from the state, norm, bonus and gate ----

template <typename Element>
__global__ void __launch_bounds__(threads)
    finish_kernel(chunk_list list, chunk_workspace work, time_mix_parameters of) {
  __shared__ float y[side][side + 4];  // [token, value]
  if (blockIdx.y >= list.count->chunks) return;
  const run_chunk chunk = list.chunks[blockIdx.y];
  const std::size_t place = (std::size_t{blockIdx.y} * gridDim.x + blockIdx.x) * matrix_floats;
  const lane_place at;
  constexpr unsigned half_tiles = tiles / 2;  // a warp has 16 values and half of the tokens
  const unsigned strip = at.warp % strips, first_tile = at.warp / strips * half_tiles;
  tile_c sums[half_tiles];
  operand_rows state;
  for (unsigned n = 0; n < half_tiles; ++n)
    load_floats(work.y + place + result_at(strip, first_tile + n, at.lane), sums[n]);
#pragma unroll
  for (unsigned tile = 0; tile < tiles; ++tile)
    load_floats(work.d + place + result_at(strip, tile, at.lane), state[tile]);
  multiply_right(sums, state, work.q + place, first_tile, at.lane);
  for (unsigned n = 0; n < half_tiles; ++n)
    for (unsigned i = 0; i < 4; ++i)
      y[8 * (first_tile + n) + 2 * at.t + i % 2][16 * strip + at.g + i / 2 * 8] = sums[n][i];
  __syncthreads();

  const auto* const bonuses = static_cast<const gate_type<Element>*>(work.bonus) + place;
  const std::uint32_t first = at.lane * lane_channels, channel = blockIdx.x * head_size + first;
  of_lane weight, bias;
  load_floats(of.ln_x_weight + channel, weight);
  load_floats(of.ln_x_bias + channel, bias);
#pragma unroll 4
  for (unsigned t = at.warp; t < chunk.rows; t += threads / warp_width) {
    of_lane read, bonus, g;
    load_floats(&y[t][first], read);
    load_floats(bonuses + t * side + first, bonus);
    load_products<gate_type<Element>>(of.g_out, chunk.first_row + t, channel, g);
    finish_token<Element>(of, chunk.first_row + t, channel, read, weight, bias, bonus, g);
  }
}

std::uint32_t room_for_chunks(std::uint32_t rows, std::uint32_t runs) {
  const std::uint32_t long_runs = std::min(rows / chunked_rows_min, runs);
  return std::min(rows / chunked_rows_min, rows / chunk_tokens + long_runs);
}

}  // namespace

bool chunked_time_mix::available() {
  if (warp_width != 32) return false;
  for (const auto kernel : {describe_kernel<float>, describe_kernel<half>, describe_kernel<bf16>})
    if (!allow_shared_bytes(kernel, sizeof(shared_chunk))) return false;
  for (const auto kernel : {carry_kernel<float>, carry_kernel<half>})
    if (!allow_shared_bytes(kernel, stages_in_flight * sizeof(chunk_stage))) return false;
  return true;
}

chunked_time_mix::chunked_time_mix(std::uint32_t width, element type, std::uint32_t rows_max, std::uint32_t runs_max)
    : heads_(width / head_size),
      type_(type),
      max_{room_for_chunks(rows_max, runs_max), std::min(rows_max / chunked_rows_min, runs_max)} {
  std::byte* at = nullptr;
  const auto place = [&]<typename T>(T*& part, std::size_t bytes) {
    part = reinterpret_cast<T*>(at);
    at += (bytes + 255) / 256 * 256;
  };
  // Twice: first from address 0, to know the size.
  for (int pass = 0; pass < 2; ++pass) {
    const std::size_t matrices = std::size_t{max_.chunks} * heads_, floats = matrices * matrix_floats;
    place(list_.count, sizeof *list_.count);
    place(list_.chunks, max_.chunks * sizeof *list_.chunks);
    place(list_.runs, max_.runs * sizeof *list_.runs);
    place(work_.p, floats * sizeof *work_.p);
    place(work_.q, floats * sizeof *work_.q);
    place(work_.d, floats * sizeof *work_.d);
    place(work_.y, floats * sizeof *work_.y);
    place(work_.decay, matrices * side * sizeof *work_.decay);
    auto* bonus = static_cast<std::byte*>(nullptr);
    place(bonus, floats * element_bytes(gate_element(type)));
    work_.bonus = bonus;
    if (pass > 0) break;
    memory_ = device_buffer<std::byte>(reinterpret_cast<std::uintptr_t>(at));
    at = memory_.data();
  }
}

result<void> chunked_time_mix::plan(stream_handle in, const device_batch& rows, std::span<const sequence_run> runs) {
  list_.room = {};
  short_runs_ = false;
  for (const sequence_run& run : runs) {
    const std::uint32_t chunks = chunks_of(run);
    list_.room.chunks += chunks;
    list_.room.runs += chunks > 0 ? 1 : 0;
    short_runs_ |= chunks == 0;
  }
  check(list_.room.chunks <= max_.chunks);
  check(list_.room.runs <= max_.runs);
  if (!has_long_runs()) return {};
  return launch({"plan_chunks", {1}, {plan_threads}, 0, in}, plan_kernel, rows, list_);
}

result<void> chunked_time_mix::run(stream_handle in, element state_type, const time_mix_parameters& of) const {
  check(of.width == heads_ * head_size);
  check(state_type != element::bf16);
  if (!has_long_runs()) return {};
  if (auto r = describe(in, of); !r) return r;
  if (auto r = carry(in, state_type, of); !r) return r;
  return finish(in, of);
}

result<void> chunked_time_mix::describe(stream_handle in, const time_mix_parameters& of) const {
  const launch_shape shape{"describe_chunks", {heads_, list_.room.chunks}, {threads}, sizeof(shared_chunk), in};
  return with_element(type_,
                      [&]<typename Element>() { return launch(shape, describe_kernel<Element>, list_, work_, of); });
}

result<void> chunked_time_mix::carry(stream_handle in, element state_type, const time_mix_parameters& of) const {
  const launch_shape shape{
      "carry_state", {2 * heads_, list_.room.runs}, {carry_threads}, stages_in_flight * sizeof(chunk_stage), in};
  return state_type == element::f32 ? launch(shape, carry_kernel<float>, list_, work_, of)
                                    : launch(shape, carry_kernel<half>, list_, work_, of);
}

result<void> chunked_time_mix::finish(stream_handle in, const time_mix_parameters& of) const {
  const launch_shape shape{"finish_chunks", {heads_, list_.room.chunks}, {threads}, 0, in};
  return with_element(type_,
                      [&]<typename Element>() { return launch(shape, finish_kernel<Element>, list_, work_, of); });
}

}  // namespace skein::kernels::gpu
