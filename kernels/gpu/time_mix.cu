// A block is one head of one run: 64 threads, each of which owns one channel of the head. As a channel of v it is a row
// of the state, S[value, 0 .. 63], which stays in the thread's registers for the whole run, so the sums over keys need
// no other thread.
//
// The run goes by in tiles of up to eight tokens: first the vectors of all tokens of the tile are made, then the state
// takes one token after another.
#include "kernels/gpu/time_mix.hpp"

#include <type_traits>

#include "base/check.hpp"
#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/device/head_state.cuh"
#include "kernels/gpu/device/product_rows.cuh"
#include "kernels/ops.hpp"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned threads = head_size;
constexpr std::uint32_t tile_tokens = 8;

/// The vectors of a tile's tokens.
struct alignas(16) shared_tile {
  float r[tile_tokens][head_size], w[tile_tokens][head_size], k[tile_tokens][head_size];
  float kk[tile_tokens][head_size], a_kk[tile_tokens][head_size];
  // These are read by their owner only.
  float v[tile_tokens][head_size], g[tile_tokens][head_size], bonus[tile_tokens][head_size];
};

/// gate_element as a type.
template <typename Element>
using gate_type = std::conditional_t<std::is_same_v<Element, float>, float, half>;

__device__ float logistic(float x) { return 1 / (1 + expf(-x)); }

/// The part of a launch that this thread works on.
struct place {
  std::uint32_t row, tokens;  // the first token of the tile, and how many there are
  std::uint32_t channel;      // of all heads

  template <typename Element>
  __device__ Element& at(const void* rows, std::uint32_t width, std::uint32_t t) const {
    return static_cast<Element*>(const_cast<void*>(rows))[static_cast<std::size_t>(row + t) * width + channel];
  }
};

/// S <- S diag(w) - (S kk) (a * kk)^T + v k^T for this thread's row of S; returns (S r)[value].
template <typename Stored>
__device__ float take_token(const shared_tile& tile, std::uint32_t t, float v, float (&state)[head_size]) {
  float removed[4] = {}, read[4] = {};  // four chains: the additions need not wait for each other
#pragma unroll
  for (std::uint32_t key = 0; key < head_size; ++key)
    removed[key % 4] = multiply_add(state[key], tile.kk[t][key], removed[key % 4]);
  const float all_removed = (removed[0] + removed[1]) + (removed[2] + removed[3]);
#pragma unroll
  for (std::uint32_t key = 0; key < head_size; ++key) {
    const float kept = multiply_add(-all_removed, tile.a_kk[t][key], state[key] * tile.w[t][key]);
    const float updated = multiply_add(v, tile.k[t][key], kept);
    read[key % 4] = multiply_add(updated, tile.r[t][key], read[key % 4]);
    state[key] = to_float(from_float<Stored>(updated));
  }
  return (read[0] + read[1]) + (read[2] + read[3]);
}

/// The vectors of token t.
template <typename Element>
__device__ void make_token(const time_mix_parameters& of, const place& here, shared_tile& tile, std::uint32_t t) {
  using gate = gate_type<Element>;
  const std::uint32_t i = threadIdx.x, c = here.channel, row = here.row + t;
  const float r = load_product<Element>(of.r, row, c);
  const float k = load_product<Element>(of.k, row, c);
  const float v = load_product<Element>(of.v, row, c);
  if (of.first_layer) {
    here.at<Element>(of.v_first, of.width, t) = from_float<Element>(v);
    tile.v[t][i] = v;
  } else {
    const float v_first = to_float(here.at<const Element>(of.v_first, of.width, t));
    tile.v[t][i] = multiply_add(v_first - v, logistic(of.v0[c] + load_product<gate>(of.v_out, row, c)), v);
  }
  const float rate = logistic(of.a0[c] + load_product<gate>(of.a_out, row, c));
  const float raw_kk = k * of.k_k[c];  // from k before the rate changes it
  const float kk = raw_kk / fmaxf(sqrtf(block_sum(raw_kk * raw_kk)), 1e-12f);
  const float new_k = k * multiply_add(rate - 1, of.k_a[c], 1);
  tile.r[t][i] = r;
  tile.w[t][i] = expf(-0.60653066f * logistic(of.w0[c] + load_product<gate>(of.w_out, row, c)));  // exp(-0.5)
  tile.k[t][i] = new_k;
  tile.kk[t][i] = kk;
  tile.a_kk[t][i] = rate * kk;
  tile.g[t][i] = load_product<gate>(of.g_out, row, c);
  tile.bonus[t][i] = block_sum(r * new_k * of.r_k[c]) * tile.v[t][i];
}

template <typename Element, typename Stored>
__device__ void mix_tile(const time_mix_parameters& of, const place& here, shared_tile& tile,
                         float (&state)[head_size]) {
  const std::uint32_t i = threadIdx.x, c = here.channel;
  for (std::uint32_t t = 0; t < here.tokens; ++t) make_token<Element>(of, here, tile, t);
  __syncthreads();
  for (std::uint32_t t = 0; t < here.tokens; ++t) {
    const float y = take_token<Stored>(tile, t, tile.v[t][i], state);
    const float off_mean = y - block_sum(y) / head_size;
    const float scale = 1 / sqrtf(block_sum(off_mean * off_mean) / head_size + group_norm_eps);
    const float normed = off_mean * scale * of.ln_x_weight[c] + of.ln_x_bias[c];
    here.at<Element>(of.y, of.width, t) = from_float<Element>((normed + tile.bonus[t][i]) * tile.g[t][i]);
  }
}

template <typename Element, typename Stored>
__global__ void __launch_bounds__(threads) time_mix_kernel(device_batch rows, time_mix_parameters of) {
  __shared__ shared_tile tile;
  if (blockIdx.y >= rows.counts->runs) return;
  const sequence_run run = rows.runs[blockIdx.y];
  Stored* const stored = reinterpret_cast<Stored*>(static_cast<char*>(of.state) + run.slot * of.slot_bytes) +
                         static_cast<std::size_t>(blockIdx.x) * head_size * head_size;
  constexpr std::uint32_t size = packet<Stored>::size;
  float state[head_size];
#pragma unroll
  for (std::uint32_t key = 0; key < head_size; key += size) {
    const auto values = load_packet(stored + head_state_index<Stored>(threadIdx.x, key));
    for (std::uint32_t i = 0; i < size; ++i) state[key + i] = to_float(values.values[i]);
  }

  place here{run.first_row, 0, blockIdx.x * head_size + threadIdx.x};
  for (std::uint32_t left = run.rows; left > 0; left -= here.tokens, here.row += here.tokens) {
    here.tokens = left < tile_tokens ? left : tile_tokens;
    mix_tile<Element, Stored>(of, here, tile, state);
  }

#pragma unroll
  for (std::uint32_t key = 0; key < head_size; key += size) {
    packet<Stored> values;
    for (std::uint32_t i = 0; i < size; ++i) values.values[i] = from_float<Stored>(state[key + i]);
    store_packet(stored + head_state_index<Stored>(threadIdx.x, key), values);
  }
}

}  // namespace

result<void> time_mix(stream_handle in, const device_batch& rows, element type, element state_type,
                      const time_mix_parameters& of) {
  check(of.width % head_size == 0);
  check(state_type != element::bf16);
  const launch_shape shape{"time_mix", {of.width / head_size, rows.room.runs}, {threads}, 0, in};
  return with_element(type, [&]<typename Element>() {
    return state_type == element::f32 ? launch(shape, time_mix_kernel<Element, float>, rows, of)
                                      : launch(shape, time_mix_kernel<Element, half>, rows, of);
  });
}

}  // namespace skein::kernels::gpu
