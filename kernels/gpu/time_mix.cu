// Token after token: what decode, short runs and every GPU without tensor cores use.
//
// A block is one head of one run. Four lanes share a row of the state, S[value, 0 .. 63], a quarter of its keys each,
// and keep it in registers for the whole run; sums over keys are three additions beyond a lane's own. So nothing of the
// state passes between warps, and a token needs two barriers: before it, when its vectors are there, and after it, when
// all values of y are. Its vectors and its output are one warp's work, so a tile of as many tokens as a block has warps
// needs no more barriers than one token.
//
// Nothing but addresses comes before the loads of the state, which take longest; and nothing touches what they bring
// before the vectors of the first tile are made.
#include "kernels/gpu/time_mix.hpp"

#include "base/check.hpp"
#include "kernels/gpu/device/head_state.cuh"
#include "kernels/gpu/device/time_mix_token.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned value_lanes = 4;  // that share a row of the state
constexpr unsigned threads = head_size * value_lanes;
constexpr unsigned blocks_each = 4;  // of a multiprocessor, by registers: their states on the way are 64 KiB
constexpr unsigned lane_keys = head_size / value_lanes;
constexpr unsigned tile_tokens = threads / warp_width;

struct alignas(16) shared_tile {
  float r[tile_tokens][head_size], w[tile_tokens][head_size], k[tile_tokens][head_size], v[tile_tokens][head_size];
  float kk[tile_tokens][head_size], a_kk[tile_tokens][head_size], y[tile_tokens][head_size];
  // These are read by their owner only.
  float bonus[tile_tokens][head_size], g[tile_tokens][head_size];
  float ln_x_weight[head_size], ln_x_bias[head_size];
};

/// Four keys' worth of a vector in shared memory.
__device__ packet<float> four(const float* vector, std::uint32_t key) { return load_packet(vector + key); }

/// A lane's part of a row of the state. Its keys are whole packets, every fourth one of the row, so that the lanes of a
/// row read 64 bytes in one piece.
template <typename Stored>
struct row_part {
  static constexpr unsigned size = packet<Stored>::size;
  struct packets {
    packet<Stored> of[lane_keys / size];
  };
  std::uint32_t value, lane;
  float s[lane_keys];

  /// The key of s[i].
  __device__ std::uint32_t key(unsigned i) const { return (i / size * value_lanes + lane) * size + i % size; }

  __device__ packets load(const Stored* head) const {
    packets loaded;
#pragma unroll
    for (unsigned i = 0; i < lane_keys; i += size)
      loaded.of[i / size] = load_packet_once(head + head_state_index<Stored>(value, key(i)));
    return loaded;
  }
  __device__ void unpack(const packets& loaded) {
#pragma unroll
    for (unsigned i = 0; i < lane_keys; ++i) s[i] = to_float(loaded.of[i / size].values[i % size]);
  }
  __device__ void store(Stored* head) const {
#pragma unroll
    for (unsigned i = 0; i < lane_keys; i += size) {
      packet<Stored> packed;
      for (unsigned j = 0; j < size; ++j) packed.values[j] = from_float<Stored>(s[i + j]);
      store_packet(head + head_state_index<Stored>(value, key(i)), packed);
    }
  }

  /// S <- S diag(w) - (S kk) (a * kk)^T + v k^T; returns (S r)[value] in all lanes of the row.
  __device__ float take(const shared_tile& tile, std::uint32_t t) {
    float removed[2] = {}, read[2] = {};  // two chains: the additions need not wait for each other
#pragma unroll
    for (unsigned i = 0; i < lane_keys; i += 4) {
      const auto kk = four(tile.kk[t], key(i));
      for (unsigned j = 0; j < 4; ++j) removed[j % 2] = multiply_add(s[i + j], kk.values[j], removed[j % 2]);
    }
    const float all_removed = sum_of_row(removed[0] + removed[1]), v = tile.v[t][value];
#pragma unroll
    for (unsigned i = 0; i < lane_keys; i += 4) {
      const auto w = four(tile.w[t], key(i)), k = four(tile.k[t], key(i));
      const auto a_kk = four(tile.a_kk[t], key(i)), r = four(tile.r[t], key(i));
      for (unsigned j = 0; j < 4; ++j) {
        const float kept = multiply_add(-all_removed, a_kk.values[j], s[i + j] * w.values[j]);
        const float updated = multiply_add(v, k.values[j], kept);
        read[j % 2] = multiply_add(updated, r.values[j], read[j % 2]);
        s[i + j] = to_float(from_float<Stored>(updated));
      }
    }
    return sum_of_row(read[0] + read[1]);
  }

  __device__ static float sum_of_row(float value) {
    value += shuffle_xor(value, 1);
    return value + shuffle_xor(value, 2);
  }
};

/// Makes a token's vectors.
template <typename Element>
__device__ void fill_tile(const time_mix_parameters& of, std::uint32_t row, std::uint32_t channel, shared_tile& tile,
                          std::uint32_t t) {
  const token_inputs in = load_inputs<Element>(of, row, channel);
  token_vectors made = make_token<false>(in, load_weights(of, channel), of.first_layer);
  for (float& w : made.log_w) w = expf(w);
  keep_v_first<Element>(of, row, channel, in.v);
  const std::uint32_t first = channel % head_size;
  store_floats(&tile.r[t][first], in.r);
  store_floats(&tile.w[t][first], made.log_w);
  store_floats(&tile.k[t][first], made.k);
  store_floats(&tile.v[t][first], made.v);
  store_floats(&tile.kk[t][first], made.kk);
  store_floats(&tile.a_kk[t][first], made.a_kk);
  store_floats(&tile.bonus[t][first], made.bonus);
  store_floats(&tile.g[t][first], in.g);
}

template <typename Element>
__device__ void read_tile(const time_mix_parameters& of, std::uint32_t row, std::uint32_t channel,
                          const shared_tile& tile, std::uint32_t t) {
  const std::uint32_t first = channel % head_size;
  of_lane y, weight, bias, bonus, g;
  load_floats(&tile.y[t][first], y);
  load_floats(&tile.ln_x_weight[first], weight);
  load_floats(&tile.ln_x_bias[first], bias);
  load_floats(&tile.bonus[t][first], bonus);
  load_floats(&tile.g[t][first], g);
  finish_token<Element>(of, row, channel, y, weight, bias, bonus, g);
}

template <typename Element, typename Stored>
__global__ void __launch_bounds__(threads, blocks_each) time_mix_kernel(device_batch rows, time_mix_parameters of) {
  __shared__ shared_tile tile;
  const sequence_run run = rows.runs[blockIdx.y];  // beyond the count it says nothing, but it can be read
  if (blockIdx.y >= rows.counts->runs || run.rows > of.rows_max) return;
  Stored* const head = reinterpret_cast<Stored*>(static_cast<char*>(of.state) + run.slot * of.slot_bytes) +
                       static_cast<std::size_t>(blockIdx.x) * head_size * head_size;
  row_part<Stored> state{threadIdx.x / value_lanes, threadIdx.x % value_lanes, {}};
  const auto loaded = state.load(head);

  const std::uint32_t warp = threadIdx.x / warp_width;
  const std::uint32_t channel = blockIdx.x * head_size + threadIdx.x % warp_width * lane_channels;
  std::uint32_t row = run.first_row + warp, left = run.rows;  // this warp's token of the tile
  if (threadIdx.x < head_size) {                              // now, when others wait as well
    tile.ln_x_weight[threadIdx.x] = of.ln_x_weight[blockIdx.x * head_size + threadIdx.x];
    tile.ln_x_bias[threadIdx.x] = of.ln_x_bias[blockIdx.x * head_size + threadIdx.x];
  }
  if (warp < left) fill_tile<Element>(of, row, channel, tile, warp);
  state.unpack(loaded);
  while (true) {
    __syncthreads();
    for (std::uint32_t t = 0; t < tile_tokens && t < left; ++t) {
      const float read = state.take(tile, t);
      if (state.lane == 0) tile.y[t][state.value] = read;
    }
    __syncthreads();
    if (warp < left) read_tile<Element>(of, row, channel, tile, warp);
    if (left <= tile_tokens) break;
    row += tile_tokens, left -= tile_tokens;
    if (warp < left) fill_tile<Element>(of, row, channel, tile, warp);
  }
  state.store(head);
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
