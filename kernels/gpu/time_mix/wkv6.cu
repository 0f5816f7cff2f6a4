// Time mixing of RWKV-5 and 6, one token after another, for decode and short runs. The block, its registers and its
// barriers are those of time_mix.cu: a block is one head of one run, eight lanes share two rows of the state, and each
// warp computes the vectors and the output of one token of a tile. As there, many runs of one token have smaller
// blocks, so that all heads of 8 sequences of 7B are in flight at once.
//
// Floor: the bytes of the states, read and written.
#include "kernels/gpu/time_mix/wkv6.hpp"

#include "base/check.hpp"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/time_mix/one_token.cuh"
#include "kernels/gpu/time_mix/wkv6_rows.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned wkv6_threads = row_threads_of_head;
constexpr unsigned tile_tokens = wkv6_threads / warp_width;
constexpr std::uint32_t many_heads = 512, very_many_heads = 1024;  // of all runs, as in time_mix.cu

/// Loads and computes the vectors of the token in row `row`.
template <typename Element, typename Stored, unsigned places>
__device__ void fill_row(const wkv6_parameters& of, std::uint32_t row, std::uint32_t channel,
                         const wkv6_weights& weights, wkv6_tile<places>& tile, unsigned t) {
  wkv6_inputs_on_their_way<Element, true> inputs;
  inputs.ask(of, row, channel);
  fill<Stored>(of, channel, weights, inputs.read(of), tile, t);
}

/// y = S r of this lane's rows, in all their lanes; then updates the rows with the token.
template <typename Stored>
__device__ void take(row_part<Stored>& state, const wkv6_tile<tile_tokens>& tile, unsigned t, float (&y)[lane_rows]) {
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

template <typename Element, typename Stored>
__global__ void __launch_bounds__(wkv6_threads, 2) wkv6_kernel(device_batch rows, wkv6_parameters of) {
  __shared__ wkv6_tile<tile_tokens> tile;
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
  const wkv6_weights weights(of, channel);
  pdl_wait();
  std::uint32_t row = run.first_row + run.chunked + warp,
                left = run.rows - run.chunked;  // this warp's token of the tile
  if (warp < left) fill_row<Element, Stored>(of, row, channel, weights, tile, warp);
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
    if (warp < left) fill_row<Element, Stored>(of, row, channel, weights, tile, warp);
  }
}

/// As take_token of one_token.cuh.
template <typename Stored, unsigned packets>
__device__ float take_one(packet<Stored> (&state)[packets], Stored* head, const wkv6_tile<1>& tile) {
  constexpr unsigned size = packet<Stored>::size;
  const float v = tile.v[0][threadIdx.x];
  float of_lanes[row_lanes] = {};
#pragma unroll
  for (unsigned p = 0; p < packets; ++p) {
    float updated[size];
    float& sum = of_lanes[p % row_lanes];
#pragma unroll
    for (unsigned q = 0; q < size / 4; ++q) {
      const std::uint32_t at = row_part<Stored>::position(p * size + 4 * q);  // of four keys
      const auto r = load_packet(tile.r[0] + at), w = load_packet(tile.w[0] + at), k = load_packet(tile.k[0] + at);
      for (unsigned j = 0; j < 4; ++j) {
        const float before = to_float(state[p].values[4 * q + j]);
        sum = multiply_add(before, r.values[j], sum);
        updated[4 * q + j] = add_token(before, w.values[j], v, k.values[j]);
      }
    }
    from_floats(updated, state[p].values);
    store_packet(head + head_state_index<Stored>(threadIdx.x, p * size), state[p]);
  }
  return sum_of_lanes(of_lanes);
}

/// For run_one_token.
template <typename Element, typename Stored>
struct wkv6_work {
  using tile = wkv6_tile<1>;
  const wkv6_parameters& of;

  __device__ void fill(std::uint32_t row, std::uint32_t channel, tile& to) const {
    const wkv6_weights weights(of, channel);
    pdl_wait();
    fill_row<Element, Stored>(of, row, channel, weights, to, 0);
  }
  template <unsigned packets>
  __device__ float take(packet<Stored> (&state)[packets], Stored* head, const tile& from) const {
    return take_one(state, head, from);
  }
  __device__ void finish(std::uint32_t row, std::uint32_t channel, const tile& from) const {
    gpu::finish<Element>(of, row, channel, wkv6_weights(of, channel), from, 0);
  }
};

template <typename Element, typename Stored>
__global__ void __launch_bounds__(one_token_threads, one_token_blocks<Stored>)
    wkv6_one_token_kernel(device_batch rows, wkv6_parameters of) {
  run_one_token<Stored>(rows, wkv6_work<Element, Stored>{of});
}

}  // namespace

result<void> wkv6(stream_handle in, const device_batch& rows, element type, element state_type,
                  const wkv6_parameters& of, std::uint32_t size) {
  if (size != head_size) return wkv6_any_head(in, rows, type, state_type, of, size);
  check(of.width % head_size == 0);
  check(state_type != element::bf16);
  check(of.w_out.parts == 0 && of.g.parts == 0);
  const std::uint32_t heads = of.width / head_size;
  if (!runtime_is_emulated && rows.room.runs == rows.room.rows && heads * rows.room.runs >= very_many_heads) {
    const auto done = wkv6_many(in, rows, type, state_type, of);  // tests call both
    if (done || done.error().kind != error_kind::unsupported) return done;
  }
  launch_shape shape{"wkv6", {heads, rows.room.runs}, {wkv6_threads}, 0, in, true};
  return with_element(type, [&]<typename Element>() {
    const auto start = [&](auto in_floats, auto in_halves) {
      return state_type == element::f32 ? launch(shape, in_floats, rows, of) : launch(shape, in_halves, rows, of);
    };
    if (rows.room.runs < rows.room.rows || heads * rows.room.runs < many_heads)
      return start(wkv6_kernel<Element, float>, wkv6_kernel<Element, half>);
    shape.block = {one_token_threads};
    return start(wkv6_one_token_kernel<Element, float>, wkv6_one_token_kernel<Element, half>);
  });
}

}  // namespace skein::kernels::gpu
