// Time mixing of long runs, 64 tokens at a time, on tensor cores.
//
// With u_t = -S kk and b_t = a * kk of token t, S_t = S_{t-1} diag(w_t) + u_t b_t^T + v_t k_t^T. Let G_t be the product
// of w up to t within a chunk and S the state before the chunk. Then, with one row per token
//   A_t = -kk_t * G_{t-1}    R_t = r_t * G_t    B_t = b_t / G_t    K_t = k_t / G_t
// u and y are as follows, where lower() keeps earlier tokens and lower_or_equal() also the token itself:
//   U = A S^T + lower(A B^T) U + lower(A K^T) V
//   Y = R S^T + lower_or_equal(R B^T) U + lower_or_equal(R K^T) V
// and the state after the chunk is (S + U^T B + V^T K) diag(G_64). U is on both sides, but the matrix before it is
// strictly lower: with T = (I - lower(A B^T))^-1, U = W S^T + U0, where W = T A and U0 = T lower(A K^T) V. So
//   Y  = Q S^T + Y0               Q = R + lower_or_equal(R B^T) W   Y0 = lower_or_equal(R B^T) U0
//                                                                        + lower_or_equal(R K^T) V
//   S' = S diag(G_64) + S P + D   P = W^T B diag(G_64)              D  = (U0^T B + V^T K) diag(G_64)
//
// P, Q, D and Y0 need no state: one block per chunk and head computes them, all in parallel. Only S P has to be done in
// order. A block waits for the state that the block of the previous chunk passes on, advances it through its own chunk
// and passes it on, rounded as the slot would round it. Rows of S are independent of each other, so a warp processes 16
// of them. Meanwhile other warps compute Y, from which norm, bonus and gate make the output. Only states between chunks
// go through global memory.
//
// Operands are fp16. A decay is above 0.545, and 1 / G_64 may be 10^17, so A, R, B and K are scaled relative to the
// middle of every 16 tokens, which is a factor of 2^7 at most. The decay between two blocks is applied when they are
// multiplied, and is never above 1. Values and states are scaled by 1/16, so that they may be as large as a million. In
// S diag(G_64) the state keeps all its bits; only what tokens remove from it and read from it is rounded to operands.
#include "kernels/gpu/time_mix/chunks/wkv_chunks.hpp"

#include "base/check.hpp"
#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/time_mix/chunks/chunk_gemms.cuh"
#include "kernels/gpu/time_mix/chunks/chunk_states.cuh"

namespace skein::kernels::gpu {

namespace {

/// Whether the gates of a chunk fit in the memory of A B^T and A K^T; fp32 ones do not.
template <typename Element>
constexpr bool gates_fit = sizeof(gate_type<Element>) * side* side <= 2 * sizeof(lower_blocks);

/// Reads the state before the chunk, stores it as a left operand, and turns D into the state after.
__device__ void take_chunk(const state_strip& strip, shared_chunk& s, const lane_place& at, result_rows& d) {
  operand_rows operand;
  {
    result_rows state;
    strip.take(at, state);
#pragma unroll
    for (unsigned i = 0; i < blocks; ++i) left_operand(state[2 * i], state[2 * i + 1], operand[i]);
#pragma unroll
    for (unsigned tile = 0; tile < tiles; ++tile) {
      float decay[2];
      load_floats(&s.whole[8 * tile + 2 * at.t], decay);
      for (unsigned i = 0; i < 4; ++i) d[tile][i] = multiply_add(state[tile][i], decay[i % 2], d[tile][i]);
    }
  }
#pragma unroll
  for (unsigned i = 0; i < blocks; ++i) multiply_right(d[2 * i], d[2 * i + 1], operand, s.p, i, at.lane);
#pragma unroll
  for (unsigned i = 0; i < blocks; ++i) store_tile(s.late.state + tile_at(strip.strip, i, at.lane), operand[i]);
}

template <typename Element>
__device__ void finish_tokens(const shared_chunk& s, const gate_type<Element>* gates, const run_chunk& chunk,
                              const time_mix_parameters& of, const lane_place& at) {
  const unsigned token = half_tokens * at.warp + at.lane / couple_lanes % 4 * 2,
                 first = at.lane % couple_lanes * couple_channels;
  const std::uint32_t channel = blockIdx.x * head_size + first;
  // Y is scaled by value_scale, which affects a norm only through its epsilon.
  constexpr float eps = group_norm_eps * value_scale * value_scale;
#pragma unroll
  for (unsigned i = 0; i < 2; ++i) {
    const unsigned t = token + i;
    of_couple out, gate;
    if constexpr (gates_fit<Element>)
      load_channels(gates + t * side + first, gate);
    else
      load_channels(gate_place<Element>(of.g_out, chunk.first_row + (t < chunk.rows ? t : chunk.rows - 1), channel),
                    gate);
    load_spread(s.late.y[t], first, out);
    channels_of_operands v;
    v.load(s.v.at(t, first));
    float sum = 0, squares = 0;
    for (const float value : out) sum += value;
    const float mean = couple_sum(sum) / head_size;
    for (const float value : out) squares = multiply_add(value - mean, value - mean, squares);
    const float scale = inverse_root(couple_sum(squares) / head_size + eps), bonus = s.bonus[t] * (1 / value_scale);
#pragma unroll
    for (unsigned c = 0; c < couple_channels; ++c) {
      const float normed = multiply_add((out[c] - mean) * scale, s.weights[ln_x_weight][spread(first) + spread(c)],
                                        s.weights[ln_x_bias][spread(first) + spread(c)]);
      out[c] = multiply_add(bonus, v.values[c], normed) * gate[c];
    }
    if (t < chunk.rows)
      store_channels(static_cast<Element*>(of.y) + static_cast<std::size_t>(chunk.first_row + t) * of.width + channel,
                     out);
  }
}

/// One block per chunk and head. Each warp of its first half processes 16 keys, each of the other half 16 values.
/// Blocks begin in the order of their numbers, so a block that waits for a state waits for one that is running or done.
template <typename Element, bool in_parts>
__global__ void __launch_bounds__(threads, blocks_at_once)
    chunk_kernel(chunk_list list, time_mix_parameters of, bool state_in_16) {
  shared_chunk& s = *dynamic_shared<shared_chunk>();
  weight_packet weights(of);
  pdl_wait();
  const run_chunk chunk = list.chunks[blockIdx.y];  // if there is one: both loads are in flight together
  if (blockIdx.y >= *list.count) return;
  const lane_place at;
  make_vectors<Element, in_parts>(of, chunk, weights, s);
  __syncthreads();
  make_decays(s);
  __syncthreads();
  relate_tokens(s, at);
  __syncthreads();
  const unsigned strip = at.warp % blocks;
  const bool of_keys = at.warp < blocks;
  auto* const gates = static_cast<gate_type<Element>*>(static_cast<void*>(&s.ab));
  const state_strip state(list, chunk, of.state, of.slot_bytes, state_in_16, strip);
  result_rows sums = {};  // Y; or the state after the chunk
  if (of_keys)
    describe_keys(s, strip, at);
  else
    describe_values(s, strip, at, sums);
  __syncthreads();
  if (of_keys) {
    if constexpr (gates_fit<Element>) copy_rows(gates, chunk, of.g_out);
    read_tokens(s, strip, at, sums);
    await_copies<0>();
  } else {
    take_chunk(state, s, at, sums);
    state.give(sums, at);
  }
  __syncthreads();
  if (of_keys) {
    read_state(s, strip, at, sums);
#pragma unroll
    for (unsigned n = 0; n < tiles; ++n)
      for (unsigned i = 0; i < 4; ++i)
        s.late.y[8 * n + 2 * at.t + i % 2][spread(16 * strip + at.g + i / 2 * 8)] = sums[n][i];
  } else {
    state.clear_taken(at);
  }
  __syncthreads();
  finish_tokens<Element>(s, gates, chunk, of, at);
}

}  // namespace

bool chunked_time_mix::available() {
  if (warp_width != 32) return false;
  for (const auto kernel : {chunk_kernel<float, false>, chunk_kernel<half, false>, chunk_kernel<bf16, false>,
                            chunk_kernel<float, true>, chunk_kernel<half, true>, chunk_kernel<bf16, true>})
    if (!allow_shared_bytes(kernel, sizeof(shared_chunk))) return false;
  return true;
}

result<void> chunked_time_mix::run(stream_handle in, element state_type, const time_mix_parameters& of) const {
  check(of.width == heads() * head_size);
  check(state_type != element::bf16);
  if (!has_chunks()) return {};
  const launch_shape shape{"time_mix_chunks", {heads(), chunks()}, {threads}, sizeof(shared_chunk), in, true};
  const bool in_parts = of.r.parts > 0 || of.k.parts > 0 || of.v.parts > 0, state_in_16 = state_type == element::f16;
  return with_element(type(), [&]<typename Element>() {
    return in_parts ? launch(shape, chunk_kernel<Element, true>, list(), of, state_in_16)
                    : launch(shape, chunk_kernel<Element, false>, list(), of, state_in_16);
  });
}

}  // namespace skein::kernels::gpu
