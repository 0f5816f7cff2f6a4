// Time mixing of long runs of RWKV-5 and 6, 64 tokens at a time, on tensor cores.
//
// Let G_t be the product of w up to token t within a chunk, S the state before the chunk, and b the bonus. With one row
// per token, and R_t = r_t * G_{t-1},
//   Y  = R S^T + A V              A_ts = r_t (w_{s+1} * ... * w_{t-1} * k_s)^T for s < t,  r_t (b * k_t)^T for s = t
//   S' = S diag(G_64) + D         D  = sum over t of v_t^T (k_t * w_{t+1} * ... * w_64)
//
// D and A V need no state: one block per chunk and head computes them, all in parallel. Only the state is computed in
// order: a block waits for the state that the block of the previous chunk passes on, multiplies it by G_64, adds D and
// passes it on, rounded as the slot would round it (chunk_states.cuh). Rows of S are independent of each other, so a
// warp processes 16 of them. Meanwhile other warps compute A V, then add what is read from the state, from which norm
// and gate make the output.
//
// A decay may be 0, so nothing is divided by one. Rows of R decay from the beginning of their block of 16 tokens, and
// rows of K to the end of theirs; the decay over whole blocks between two of them is applied when they are multiplied.
// All of these are products of w, and none is above 1. Within a block, A is computed without tensor cores in fp32.
//
// Operands are fp16. r and k of a token may be as large as fp16 allows, so each is scaled by the power of two that
// makes its largest number one between 1 and 2. Then A is at most 256. The group norm removes the scale of r but for
// its epsilon, and v takes up that of k. Values and states are scaled by 1/16, so that v k^T and states may be as large
// as a million; beyond that operands are limited to the largest number. In S diag(G_64) the state keeps all its bits;
// only what is added to it and read from it is rounded to operands.
#include "kernels/gpu/time_mix/chunks/wkv6_chunks.hpp"

#include "base/check.hpp"
#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/time_mix/chunks/wkv6_chunk_gemms.cuh"
#include "kernels/gpu/time_mix/wkv6_token.cuh"

namespace skein::kernels::gpu {

namespace {

/// Per SM. Models do not use the kernels of fp32, which need more registers than two leave.
template <typename Element>
constexpr unsigned blocks_at_once = sizeof(Element) == 2 ? 2 : 1;
static_assert(3 * (sizeof(wkv6_chunk) + 1024) <= 228 * 1024 ||
              sizeof(operand_pair) > 4);  // the system reserves 1 KiB per block

/// Whether gates are copied to shared memory; fp32 ones do not fit.
template <typename Element>
constexpr bool copies_gates = sizeof(Element) == sizeof(*wkv6_late_comers::g);

/// Passes on the state after the chunk, then stores the one before as a left operand.
__device__ void take_chunk(const state_strip& strip, wkv6_chunk& s, const lane_place& at, result_rows& d) {
  result_rows state;
  strip.take(at, state);
#pragma unroll
  for (unsigned tile = 0; tile < tiles; ++tile) {
    float decay[2];
    load_floats(&s.whole[8 * tile + 2 * at.t], decay);
    for (unsigned i = 0; i < 4; ++i) d[tile][i] = multiply_add(state[tile][i], decay[i % 2], d[tile][i]);
  }
  strip.give(d, at);
#pragma unroll
  for (unsigned i = 0; i < blocks; ++i) {
    tile_a operand;
    left_operand(state[2 * i], state[2 * i + 1], operand);
    store_tile(s.late.state + tile_at(strip.strip, i, at.lane), operand);
  }
}

template <typename Element>
__device__ void finish_tokens(const wkv6_chunk& s, const run_chunk& chunk, const wkv6_parameters& of,
                              const lane_place& at) {
  const unsigned token = half_tokens * at.warp + at.lane / couple_lanes % 4 * 2,
                 first = at.lane % couple_lanes * couple_channels;
  const std::uint32_t channel = blockIdx.x * head_size + first;
#pragma unroll
  for (unsigned i = 0; i < 2; ++i) {
    const unsigned t = token + i;
    const std::uint32_t row = chunk.first_row + (t < chunk.rows ? t : chunk.rows - 1);
    channels_on_their_way<Element> gate;
    if (of.g.data) {
      if constexpr (copies_gates<Element>)
        gate.load(reinterpret_cast<const Element*>(s.late.g) + t * side + first);
      else
        load_gemm<false>(of.g, row, channel, gate);
    }
    of_couple out;
    load_spread(s.late.y[t], first, out);
    float sum = 0, squares = 0;
    for (const float value : out) sum += value;
    const float mean = couple_sum(sum) / head_size;
    for (const float value : out) squares = multiply_add(value - mean, value - mean, squares);
    const float scale_y = s.scale[t] * value_scale;  // y is scaled by it
    const float scale = inverse_root(couple_sum(squares) / head_size + group_norm_eps * (scale_y * scale_y));
#pragma unroll
    for (unsigned c = 0; c < couple_channels; ++c) {
      out[c] = multiply_add((out[c] - mean) * scale, s.weights[wkv6_norm_weight][spread(first) + spread(c)],
                            s.weights[wkv6_norm_bias][spread(first) + spread(c)]);
      if (of.g.data) out[c] *= silu_of(gate(c));
    }
    if (t < chunk.rows)
      store_channels(static_cast<Element*>(of.y) + static_cast<std::size_t>(row) * of.width + channel, out);
  }
}

/// One block per chunk and head. Each warp of its second half processes 16 values of the state, each of the first half
/// 16 values of Y. Blocks begin in the order of their numbers, so a block that waits for a state waits for one that is
/// running or done.
template <typename Element, bool in_parts>
__global__ void __launch_bounds__(threads, blocks_at_once<Element>)
    wkv6_chunk_kernel(chunk_list list, wkv6_parameters of, bool state_in_16) {
  wkv6_chunk& s = *dynamic_shared<wkv6_chunk>();
  const float weight = load_wkv6_weight(of);
  pdl_wait();
  const run_chunk chunk = list.chunks[blockIdx.y];  // if there is one: both loads are in flight together
  if (blockIdx.y >= *list.count) return;
  const lane_place at;
  make_wkv6_vectors<Element, in_parts>(of, chunk, weight, s);
  __syncthreads();
  if (at.warp < pairs_of_blocks) relate_pair(s, at.warp, at);
  relate_block(s, at);
  __syncthreads();
  const unsigned strip = at.warp % blocks;
  const bool of_y = at.warp < blocks;
  const state_strip state(list, chunk, of.state, of.slot_bytes, state_in_16, strip);
  result_rows sums = {};  // Y; or the state after the chunk
  if (of_y) {
    if constexpr (copies_gates<Element>)
      if (of.g.data) copy_rows(reinterpret_cast<Element*>(s.late.g), chunk, of.g);
    read_tokens(s, strip, at, sums);
    await_copies<0>();
  } else {
    describe_values(s, strip, at, sums);
    take_chunk(state, s, at, sums);
  }
  __syncthreads();
  if (of_y) {
    read_state(s, strip, at, sums);
#pragma unroll
    for (unsigned n = 0; n < tiles; ++n)
      for (unsigned i = 0; i < 4; ++i)
        s.late.y[8 * n + 2 * at.t + i % 2][spread(16 * strip + at.g + i / 2 * 8)] = sums[n][i];
  } else {
    state.clear_taken(at);
  }
  __syncthreads();
  finish_tokens<Element>(s, chunk, of, at);
}

}  // namespace

bool chunked_wkv6::available() {
  if (warp_width != 32) return false;
  for (const auto kernel :
       {wkv6_chunk_kernel<float, false>, wkv6_chunk_kernel<half, false>, wkv6_chunk_kernel<bf16, false>,
        wkv6_chunk_kernel<float, true>, wkv6_chunk_kernel<half, true>, wkv6_chunk_kernel<bf16, true>})
    if (!allow_shared_bytes(kernel, sizeof(wkv6_chunk))) return false;
  return true;
}

result<void> chunked_wkv6::run(stream_handle in, element state_type, const wkv6_parameters& of) const {
  check(of.width == heads() * head_size);
  check(state_type != element::bf16);
  check(of.w_out.parts == 0 && of.g.parts == 0);
  if (!has_chunks()) return {};
  const launch_shape shape{"wkv6_chunks", {heads(), chunks()}, {threads}, sizeof(wkv6_chunk), in, true};
  const bool in_parts = of.r.parts > 0 || of.k.parts > 0 || of.v.parts > 0;
  const bool state_in_16 = state_type == element::f16;
  return with_element(type(), [&]<typename Element>() {
    return in_parts ? launch(shape, wkv6_chunk_kernel<Element, true>, list(), of, state_in_16)
                    : launch(shape, wkv6_chunk_kernel<Element, false>, list(), of, state_in_16);
  });
}

}  // namespace skein::kernels::gpu
