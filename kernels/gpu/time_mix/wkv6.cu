// Time mixing of RWKV-5 and 6, one token after another, for decode and short runs. The block, its registers and its
// barriers are those of time_mix.cu: a block is one head of one run, eight lanes share two rows of the state, and each
// warp computes the vectors and the output of one token of a tile.
//
// Floor: the bytes of the states, read and written.
#include "kernels/gpu/time_mix/wkv6.hpp"

#include "base/check.hpp"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/time_mix/time_mix_rows.cuh"
#include "kernels/gpu/time_mix/wkv6_token.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned threads = row_threads_of_head;
constexpr unsigned tile_tokens = threads / warp_width;

/// The vectors of some tokens: r, w and k in the order of row_part::position, the others by channel.
struct alignas(16) token_tile {
  float r[tile_tokens][head_size], w[tile_tokens][head_size], k[tile_tokens][head_size], v[tile_tokens][head_size];
  float y[tile_tokens][head_size];
  // Read by their owner only.
  float bonus[tile_tokens][head_size], gate[tile_tokens][head_size];
};

/// The weights of a lane's channels.
struct lane_weights {
  of_lane decay, bonus, norm_weight, norm_bias;

  __device__ lane_weights(const wkv6_parameters& of, std::uint32_t channel) {
    load_floats(of.decay + channel, decay);
    load_floats(of.bonus + channel, bonus);
    load_floats(of.ln_x_weight + channel, norm_weight);
    load_floats(of.ln_x_bias + channel, norm_bias);
  }
};

/// Computes the vectors of the token in row `row`.
template <typename Element, typename Stored>
__device__ void fill(const wkv6_parameters& of, std::uint32_t row, std::uint32_t channel, const lane_weights& weights,
                     token_tile& tile, unsigned t) {
  using gemms = gemms_on_their_way<Element, lane_channels>;
  const gemms from_r(of.r, row, channel), from_k(of.k, row, channel), from_v(of.v, row, channel);
  gemms from_g;
  lane_on_its_way<gate_type<Element>> from_w;
  if (of.g.data) from_g = gemms(of.g, row, channel);
  if (of.w_out.data) from_w = ask_for<gate_type<Element>>(of.w_out, row, channel);
  of_lane r, k, v, w = {}, gate = {};
  from_r.read(r), from_k.read(k), from_v.read(v);
  if (of.w_out.data) from_w.read(w);
  if (of.g.data) from_g.read(gate);
  float bonus = 0;
  for (unsigned i = 0; i < lane_channels; ++i) {
    w[i] = of.w_out.data ? decay_of_token(weights.decay[i], w[i]) : weights.decay[i];
    gate[i] = of.g.data ? silu_of(gate[i]) : 1;
    bonus = multiply_add(r[i] * k[i], weights.bonus[i], bonus);
  }
  bonus = warp_sum(bonus);
  const std::uint32_t first = channel % head_size, as_key = row_part<Stored>::position(first);
  store_floats(&tile.r[t][as_key], r);
  store_floats(&tile.w[t][as_key], w);
  store_floats(&tile.k[t][as_key], k);
  store_floats(&tile.v[t][first], v);
  for (float& value : v) value *= bonus;
  store_floats(&tile.bonus[t][first], v);
  store_floats(&tile.gate[t][first], gate);
}

/// y = S r of this lane's rows, in all their lanes; then updates the rows with the token.
template <typename Stored>
__device__ void take(row_part<Stored>& state, const token_tile& tile, unsigned t, float (&y)[lane_rows]) {
  float v[lane_rows];
#pragma unroll
  for (unsigned row = 0; row < lane_rows; ++row) v[row] = tile.v[t][state.value(row)], y[row] = 0;
#pragma unroll
  for (unsigned i = 0; i < row_part<Stored>::fours; ++i) {
    const unsigned at = (i * row_lanes + state.lane) * 4;
    const auto r = load_packet(tile.r[t] + at), w = load_packet(tile.w[t] + at), k = load_packet(tile.k[t] + at);
#pragma unroll
    for (unsigned row = 0; row < lane_rows; ++row)
      for (unsigned j = 0; j < 4; ++j) {
        float& s = state.s[row][4 * i + j];
        y[row] = multiply_add(s, r.values[j], y[row]);
        s = to_float(from_float<Stored>(add_token(s, w.values[j], v[row], k.values[j])));
      }
  }
  for (unsigned row = 0; row < lane_rows; ++row) y[row] = row_part<Stored>::sum_of_row(y[row]);
}

/// out = (group_norm(y + bonus) * weight + bias) * gate
template <typename Element>
__device__ void finish(const wkv6_parameters& of, std::uint32_t row, std::uint32_t channel, const lane_weights& weights,
                       const token_tile& tile, unsigned t) {
  const std::uint32_t first = channel % head_size;
  of_lane y, bonus, gate;
  load_floats(&tile.y[t][first], y);
  load_floats(&tile.bonus[t][first], bonus);
  load_floats(&tile.gate[t][first], gate);
  float sum = 0, squares = 0;
  for (unsigned i = 0; i < lane_channels; ++i) sum += y[i] += bonus[i];
  const float mean = warp_sum(sum) / head_size;
  for (unsigned i = 0; i < lane_channels; ++i) squares = multiply_add(y[i] - mean, y[i] - mean, squares);
  const float scale = inverse_root(warp_sum(squares) / head_size + group_norm_eps);
  for (unsigned i = 0; i < lane_channels; ++i)
    y[i] = multiply_add((y[i] - mean) * scale, weights.norm_weight[i], weights.norm_bias[i]) * gate[i];
  store_floats(static_cast<Element*>(of.y) + static_cast<std::size_t>(row) * of.width + channel, y);
}

template <typename Element, typename Stored>
__global__ void __launch_bounds__(threads, 2) wkv6_kernel(device_batch rows, wkv6_parameters of) {
  __shared__ token_tile tile;
  pdl_launch_dependents();
  const sequence_run run = rows.runs[blockIdx.y];  // beyond the count it is meaningless, but may be read
  if (blockIdx.y >= rows.counts->runs || run.rows == run.chunked) return pdl_wait();
  Stored* const head = reinterpret_cast<Stored*>(static_cast<char*>(of.state) + run.slot * of.slot_bytes) +
                       static_cast<std::size_t>(blockIdx.x) * head_size * head_size;
  row_part<Stored> state;
  if (run.chunked > 0) pdl_wait();  // for the state after the run's chunks
  const auto loaded = state.load(head);
  const unsigned warp = threadIdx.x / warp_width;
  const std::uint32_t channel = blockIdx.x * head_size + threadIdx.x % warp_width * lane_channels;
  const lane_weights weights(of, channel);
  pdl_wait();
  std::uint32_t row = run.first_row + run.chunked + warp,
                left = run.rows - run.chunked;  // this warp's token of the tile
  if (warp < left) fill<Element, Stored>(of, row, channel, weights, tile, warp);
  state.unpack(loaded);
  while (true) {
    __syncthreads();
    for (unsigned t = 0; t < tile_tokens && t < left; ++t) {
      float y[lane_rows];
      take(state, tile, t, y);
      if (state.lane < lane_rows) tile.y[t][state.value(state.lane)] = state.lane == 0 ? y[0] : y[1];
    }
    if (left <= tile_tokens) state.store(head);
    __syncthreads();
    if (warp < left) finish<Element>(of, row, channel, weights, tile, warp);
    if (left <= tile_tokens) break;
    row += tile_tokens, left -= tile_tokens;
    if (warp < left) fill<Element, Stored>(of, row, channel, weights, tile, warp);
  }
}

}  // namespace

result<void> wkv6(stream_handle in, const device_batch& rows, element type, element state_type,
                  const wkv6_parameters& of, std::uint32_t size) {
  if (size != head_size) return wkv6_any_head(in, rows, type, state_type, of, size);
  check(of.width % head_size == 0);
  check(state_type != element::bf16);
  check(of.w_out.parts == 0);
  const launch_shape shape{"wkv6", {of.width / head_size, rows.room.runs}, {threads}, 0, in, true};
  return with_element(type, [&]<typename Element>() {
    return state_type == element::f32 ? launch(shape, wkv6_kernel<Element, float>, rows, of)
                                      : launch(shape, wkv6_kernel<Element, half>, rows, of);
  });
}

}  // namespace skein::kernels::gpu
