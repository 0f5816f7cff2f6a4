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
#include "kernels/gpu/time_mix/wkv_chunks.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/runtime/stream.hpp"
#include "kernels/gpu/time_mix/chunk_states.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned plan_threads = 256;

__host__ __device__ std::uint32_t chunks_of(const sequence_run& run) {
  return (run.chunked + chunk_tokens - 1) / chunk_tokens;
}

__global__ void __launch_bounds__(plan_threads) plan_kernel(device_batch rows, chunk_list list) {
  __shared__ std::uint32_t chunks[plan_threads];
  std::uint32_t done = 0;
  for (std::uint32_t first = 0; first < rows.counts->runs; first += plan_threads) {
    const std::uint32_t i = first + threadIdx.x;
    sequence_run run{};
    if (i < rows.counts->runs) run = rows.runs[i];
    __syncthreads();  // the previous counts have been read
    chunks[threadIdx.x] = chunks_of(run);
    __syncthreads();
    std::uint32_t before = done;
    for (unsigned j = 0; j < plan_threads; ++j) {
      done += chunks[j];
      if (j < threadIdx.x) before += chunks[j];
    }
    for (std::uint32_t c = 0; c < chunks[threadIdx.x]; ++c) {
      const std::uint32_t taken = c * chunk_tokens, left = run.chunked - taken;
      list.chunks[before + c] = {run.slot, run.first_row + taken, left < chunk_tokens ? left : chunk_tokens, c == 0,
                                 c + 1 == chunks[threadIdx.x]};
    }
  }
  if (threadIdx.x == 0) *list.count = done;
}

/// Whether the gates of a chunk fit in the memory of A B^T and A K^T; fp32 ones do not.
template <typename Element>
constexpr bool gates_fit = sizeof(gate_type<Element>) * side* side <= 2 * sizeof(lower_blocks);

/// Executed by the threads of the first warps.
template <typename Element>
__device__ void copy_gates(gate_type<Element>* to, const run_chunk& chunk, const time_mix_parameters& of) {
  constexpr unsigned wide = 16 / sizeof(gate_type<Element>), packets = side / wide;
  const auto* const from = static_cast<const gate_type<Element>*>(of.g_out.data) + blockIdx.x * head_size;
  for (unsigned i = threadIdx.x; i < chunk.rows * packets; i += threads / 2)
    copy_async(to + i * wide,
               from + static_cast<std::size_t>(chunk.first_row + i / packets) * of.g_out.stride + i % packets * wide);
  end_copies();
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
  const state_strip state(list, chunk, of, state_in_16, strip);
  result_rows sums = {};  // Y; or the state after the chunk
  if (of_keys)
    describe_keys(s, strip, at);
  else
    describe_values(s, strip, at, sums);
  __syncthreads();
  if (of_keys) {
    if constexpr (gates_fit<Element>) copy_gates<Element>(gates, chunk, of);
    read_tokens(s, strip, at, sums);
    await_copies<0>();
  } else {
    state.take(s, at, sums);
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

std::uint32_t room_for_chunks(std::uint32_t rows, std::uint32_t runs) {
  const std::uint32_t long_runs = std::min(rows / chunked_rows_min, runs);
  return std::min(rows / chunked_rows_min, rows / chunk_tokens + long_runs);
}

constexpr std::size_t part_bytes(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// The size of a chunk_list whose arrays follow each other.
std::size_t list_bytes(std::size_t chunks, std::size_t heads) {
  return part_bytes(sizeof *chunk_list::count) + part_bytes(chunks * sizeof *chunk_list::chunks) +
         part_bytes(chunks * heads * side * side * sizeof *chunk_list::passed);
}

}  // namespace

bool chunked_time_mix::available() {
  if (warp_width != 32) return false;
  for (const auto kernel : {chunk_kernel<float, false>, chunk_kernel<half, false>, chunk_kernel<bf16, false>,
                            chunk_kernel<float, true>, chunk_kernel<half, true>, chunk_kernel<bf16, true>})
    if (!allow_shared_bytes(kernel, sizeof(shared_chunk))) return false;
  return true;
}

std::size_t chunked_time_mix::planned_bytes(std::uint32_t width, std::uint32_t rows_max, std::uint32_t runs_max) {
  return list_bytes(room_for_chunks(rows_max, runs_max), width / head_size);
}

chunked_time_mix::chunked_time_mix(std::uint32_t width, element type, std::uint32_t rows_max, std::uint32_t runs_max)
    : heads_(width / head_size),
      type_(type),
      chunks_max_(room_for_chunks(rows_max, runs_max)),
      memory_(planned_bytes(width, rows_max, runs_max)) {
  std::byte* at = memory_.data();
  list_.count = reinterpret_cast<std::uint32_t*>(at);
  at += part_bytes(sizeof *list_.count);
  list_.chunks = reinterpret_cast<run_chunk*>(at);
  at += part_bytes(chunks_max_ * sizeof *list_.chunks);
  list_.passed = reinterpret_cast<std::uint32_t*>(at);
  const stream in;
  if (auto r = fill_with_zeros(memory_.data(), memory_.bytes(), in); !r) throw device_failure(r.error());
  if (auto r = in.synchronize(); !r) throw device_failure(r.error());
}

result<void> chunked_time_mix::plan(stream_handle in, const device_batch& rows, std::span<const sequence_run> runs) {
  chunks_ = 0;
  other_rows_ = false;
  for (const sequence_run& run : runs) {
    chunks_ += chunks_of(run);
    other_rows_ |= run.rows > run.chunked;
  }
  check(chunks_ <= chunks_max_);
  if (!has_chunks()) return {};
  return launch({"plan_chunks", {1}, {plan_threads}, 0, in}, plan_kernel, rows, list_);
}

result<void> chunked_time_mix::run(stream_handle in, element state_type, const time_mix_parameters& of) const {
  check(of.width == heads_ * head_size);
  check(state_type != element::bf16);
  if (!has_chunks()) return {};
  const launch_shape shape{"time_mix_chunks", {heads_, chunks_}, {threads}, sizeof(shared_chunk), in, true};
  const bool in_parts = of.r.parts > 0 || of.k.parts > 0 || of.v.parts > 0, state_in_16 = state_type == element::f16;
  return with_element(type_, [&]<typename Element>() {
    return in_parts ? launch(shape, chunk_kernel<Element, true>, list_, of, state_in_16)
                    : launch(shape, chunk_kernel<Element, false>, list_, of, state_in_16);
  });
}

}  // namespace skein::kernels::gpu
