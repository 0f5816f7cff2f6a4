// Token after token: what decode, short runs and every GPU without tensor cores use.
//
// A block is one head of one run. Eight lanes share two rows of the state, S[value, 0 .. 63], an eighth of the keys
// each, and keep them in registers for the whole run; sums over keys are three additions beyond a lane's own. So
// nothing of the state passes between warps, and a token needs two barriers: before it, when its vectors are there, and
// after it, when all values of y are. Its vectors and its output are one warp's work, so a tile of as many tokens as a
// block has warps needs no more barriers than one token. Two rows, because what a multiprocessor can bring from shared
// memory into registers would be the limit for states in 16 bits: vectors are loaded once for both.
//
// Nothing but addresses comes before the loads of the state, which take longest; and nothing touches what they bring
// before the vectors of the first tile are made. Nor do they wait for the kernels before: counts and runs were there
// when the first kernel of the tick to overlap another one began, and the states of its layer were when that of the
// tick before ended.
//
// When there are many one-token runs, a thread takes a whole row instead, and a block is two warps: what counts then is
// how many bytes are on their way. Floor: the bytes of the states, read and written.
#include "kernels/gpu/time_mix.hpp"

#include "base/check.hpp"
#include "kernels/gpu/device/head_state.cuh"
#include "kernels/gpu/device/overlap.cuh"
#include "kernels/gpu/device/time_mix_token.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned row_lanes = 8;  // that share rows of the state
constexpr unsigned lane_rows = 2;
constexpr unsigned lane_keys = head_size / row_lanes;
constexpr unsigned threads = head_size / lane_rows * row_lanes;
constexpr unsigned blocks_each = 2;  // of a multiprocessor, by registers
constexpr unsigned tile_tokens = threads / warp_width;
constexpr std::uint32_t many_heads = 512;  // of all runs; fewer leave a multiprocessor too little to do beside waiting

/// r, w, k, kk and a_kk in the order of row_part::position, the others by channel.
template <unsigned places>
struct alignas(16) shared_tile {
  float r[places][head_size], w[places][head_size], k[places][head_size], v[places][head_size];
  float kk[places][head_size], a_kk[places][head_size], y[places][head_size];
  // These are read by their owner only.
  float bonus[places][head_size], g[places][head_size];
};

/// One key of a row of the state: S <- S diag(w) - (S kk) (a * kk)^T + v k^T.
__device__ float update(float state, float removed, float v, float w, float a_kk, float k) {
  return multiply_add(v, k, multiply_add(-removed, a_kk, state * w));
}

/// What the lanes of a row would have after adding theirs up.
__device__ float sum_of_lanes(const float (&of)[row_lanes]) {
  static_assert(row_lanes == 8);
  return ((of[0] + of[1]) + (of[2] + of[3])) + ((of[4] + of[5]) + (of[6] + of[7]));
}

/// A lane's part of its rows of the state: whole packets of keys, every eighth one of a row.
template <typename Stored>
struct row_part {
  static constexpr unsigned size = packet<Stored>::size;
  static constexpr unsigned fours = lane_keys / 4;
  struct packets {
    packet<Stored> of[lane_rows][lane_keys / size];
  };
  /// `first_value` and the value four further: those of a warp's lanes are side by side.
  std::uint32_t first_value, lane;
  float s[lane_rows][lane_keys];

  __device__ row_part() {
    constexpr unsigned groups = warp_width / row_lanes;  // of a warp
    first_value = threadIdx.x / warp_width * groups * lane_rows + threadIdx.x % warp_width / row_lanes;
    lane = threadIdx.x % row_lanes;
  }
  __device__ std::uint32_t value(unsigned row) const { return first_value + row * (warp_width / row_lanes); }
  /// Where a key of a vector lies in shared memory: then lanes that read four keys each read 128 bytes in one piece.
  __device__ static std::uint32_t position(std::uint32_t key) {
    const std::uint32_t of_packet = key / size, four_of_packet = key % size / 4;
    return (of_packet / row_lanes * (size / 4) + four_of_packet) * (4 * row_lanes) + of_packet % row_lanes * 4 +
           key % 4;
  }

  __device__ std::uint32_t place(unsigned row, unsigned i) const {
    return head_state_index<Stored>(value(row), (i * row_lanes + lane) * size);
  }
  __device__ packets load(const Stored* head) const {
    packets loaded;
#pragma unroll
    for (unsigned row = 0; row < lane_rows; ++row)
      for (unsigned i = 0; i < lane_keys / size; ++i) loaded.of[row][i] = load_packet_once(head + place(row, i));
    return loaded;
  }
  __device__ void unpack(const packets& loaded) {
#pragma unroll
    for (unsigned row = 0; row < lane_rows; ++row)
      for (unsigned i = 0; i < lane_keys; ++i) s[row][i] = to_float(loaded.of[row][i / size].values[i % size]);
  }
  __device__ void store(Stored* head) const {
#pragma unroll
    for (unsigned row = 0; row < lane_rows; ++row)
      for (unsigned i = 0; i < lane_keys / size; ++i) {
        packet<Stored> packed;
        for (unsigned j = 0; j < size; ++j) packed.values[j] = from_float<Stored>(s[row][i * size + j]);
        store_packet(head + place(row, i), packed);
      }
  }

  /// Updates the rows by a token; y = S r of the rows, in all their lanes.
  template <unsigned places>
  __device__ void take(const shared_tile<places>& tile, std::uint32_t t, float (&y)[lane_rows]) {
    float removed[lane_rows] = {}, v[lane_rows];
#pragma unroll
    for (unsigned i = 0; i < fours; ++i) {
      const auto kk = four(tile.kk[t], i);
      for (unsigned row = 0; row < lane_rows; ++row)
        for (unsigned j = 0; j < 4; ++j) removed[row] = multiply_add(s[row][4 * i + j], kk.values[j], removed[row]);
    }
    for (unsigned row = 0; row < lane_rows; ++row) {
      removed[row] = sum_of_row(removed[row]);
      v[row] = tile.v[t][value(row)];
      y[row] = 0;
    }
#pragma unroll
    for (unsigned i = 0; i < fours; ++i) {
      const auto w = four(tile.w[t], i), k = four(tile.k[t], i), a_kk = four(tile.a_kk[t], i), r = four(tile.r[t], i);
      for (unsigned row = 0; row < lane_rows; ++row)
        for (unsigned j = 0; j < 4; ++j) {
          float& state = s[row][4 * i + j];
          const float updated = update(state, removed[row], v[row], w.values[j], a_kk.values[j], k.values[j]);
          y[row] = multiply_add(updated, r.values[j], y[row]);
          state = to_float(from_float<Stored>(updated));
        }
    }
    for (unsigned row = 0; row < lane_rows; ++row) y[row] = sum_of_row(y[row]);
  }

 private:
  /// Of a vector, those of the lane's keys 4i .. 4i + 4.
  __device__ packet<float> four(const float* vector, unsigned i) const {
    return load_packet(vector + (i * row_lanes + lane) * 4);
  }
  __device__ static float sum_of_row(float value) {
    for (unsigned mask = 1; mask < row_lanes; mask *= 2) value += shuffle_xor(value, mask);
    return value;
  }
};

/// Makes a token's vectors.
template <typename Element, typename Stored, unsigned places>
__device__ void fill_tile(const time_mix_parameters& of, std::uint32_t row, std::uint32_t channel,
                          const head_weights& weights, shared_tile<places>& tile, std::uint32_t t) {
  const token_inputs in = load_inputs<Element>(of, row, channel);
  token_vectors made = make_token<false>(in, weights, of.first_layer);
  for (float& w : made.log_w) w = expf(w);
  keep_v_first<Element>(of, row, channel, in.v);
  const std::uint32_t first = channel % head_size, as_key = row_part<Stored>::position(first);
  store_floats(&tile.r[t][as_key], in.r);
  store_floats(&tile.w[t][as_key], made.log_w);
  store_floats(&tile.k[t][as_key], made.k);
  store_floats(&tile.kk[t][as_key], made.kk);
  store_floats(&tile.a_kk[t][as_key], made.a_kk);
  store_floats(&tile.v[t][first], made.v);
  store_floats(&tile.bonus[t][first], made.bonus);
  store_floats(&tile.g[t][first], in.g);
}

template <typename Element, unsigned places>
__device__ void read_tile(const time_mix_parameters& of, std::uint32_t row, std::uint32_t channel,
                          const shared_tile<places>& tile, std::uint32_t t) {
  const std::uint32_t first = channel % head_size;
  of_lane y, weight, bias, bonus, g;
  load_floats(&tile.y[t][first], y);
  load_floats(of.ln_x_weight + channel, weight);
  load_floats(of.ln_x_bias + channel, bias);
  load_floats(&tile.bonus[t][first], bonus);
  load_floats(&tile.g[t][first], g);
  finish_token<Element>(of, row, channel, y, weight, bias, bonus, g);
}

template <typename Element, typename Stored>
__global__ void __launch_bounds__(threads, blocks_each) time_mix_kernel(device_batch rows, time_mix_parameters of) {
  __shared__ shared_tile<tile_tokens> tile;
  let_next_kernel_begin();
  const sequence_run run = rows.runs[blockIdx.y];  // beyond the count it says nothing, but it can be read
  if (blockIdx.y >= rows.counts->runs || run.rows > of.rows_max) {
    wait_for_kernels_before();  // who waits for this kernel counts on it that those before are over
    return;
  }
  Stored* const head = reinterpret_cast<Stored*>(static_cast<char*>(of.state) + run.slot * of.slot_bytes) +
                       static_cast<std::size_t>(blockIdx.x) * head_size * head_size;
  row_part<Stored> state;
  const auto loaded = state.load(head);
  const std::uint32_t warp = threadIdx.x / warp_width;
  const std::uint32_t channel = blockIdx.x * head_size + threadIdx.x % warp_width * lane_channels;
  const head_weights weights = load_weights(of, channel);
  wait_for_kernels_before();
  std::uint32_t row = run.first_row + warp, left = run.rows;  // this warp's token of the tile
  if (warp < left) fill_tile<Element, Stored>(of, row, channel, weights, tile, warp);
  state.unpack(loaded);
  while (true) {
    __syncthreads();
    for (std::uint32_t t = 0; t < tile_tokens && t < left; ++t) {
      float y[lane_rows];
      state.take(tile, t, y);
      if (state.lane < lane_rows) tile.y[t][state.value(state.lane)] = state.lane == 0 ? y[0] : y[1];
    }
    if (left <= tile_tokens) state.store(head);
    __syncthreads();
    if (warp < left) read_tile<Element>(of, row, channel, tile, warp);
    if (left <= tile_tokens) break;
    row += tile_tokens, left -= tile_tokens;
    if (warp < left) fill_tile<Element, Stored>(of, row, channel, weights, tile, warp);
  }
}

/// The token of a tile of one, for the row of the state that this thread has; y of the row.
template <typename Stored, unsigned packets>
__device__ float take_token(packet<Stored> (&state)[packets], Stored* head, const shared_tile<1>& tile) {
  constexpr unsigned size = packet<Stored>::size;
  const auto four = [](const float* vector, unsigned p, unsigned q) {  // keys 4 q .. 4 q + 4 of a packet
    return load_packet(vector + row_part<Stored>::position(p * size + 4 * q));
  };
  float of_lanes[row_lanes] = {};
#pragma unroll
  for (unsigned p = 0; p < packets; ++p)
#pragma unroll
    for (unsigned q = 0; q < size / 4; ++q) {
      const auto kk = four(tile.kk[0], p, q);
      float& sum = of_lanes[p % row_lanes];
      for (unsigned j = 0; j < 4; ++j) sum = multiply_add(to_float(state[p].values[4 * q + j]), kk.values[j], sum);
    }
  const float removed = sum_of_lanes(of_lanes), v = tile.v[0][threadIdx.x];
  for (float& sum : of_lanes) sum = 0;
#pragma unroll
  for (unsigned p = 0; p < packets; ++p) {
#pragma unroll
    for (unsigned q = 0; q < size / 4; ++q) {
      const auto w = four(tile.w[0], p, q), k = four(tile.k[0], p, q), a_kk = four(tile.a_kk[0], p, q);
      const auto r = four(tile.r[0], p, q);
      float& sum = of_lanes[p % row_lanes];
      for (unsigned j = 0; j < 4; ++j) {
        Stored& stored = state[p].values[4 * q + j];
        const float updated = update(to_float(stored), removed, v, w.values[j], a_kk.values[j], k.values[j]);
        sum = multiply_add(updated, r.values[j], sum);
        stored = from_float<Stored>(updated);
      }
    }
    store_packet(head + head_state_index<Stored>(threadIdx.x, p * size), state[p]);
  }
  return sum_of_lanes(of_lanes);
}

constexpr unsigned one_token_threads = head_size + warp_width;

/// The same for a run of one row, where there are many: a thread has a row of the state to itself, as it was stored,
/// and adds up as the lanes of a row would. So nothing but y and the vectors, which a warp of their own makes, passes
/// between threads, a block is small, and a multiprocessor has many heads on their way at once.
template <typename Element, typename Stored>
__global__ void __launch_bounds__(one_token_threads, sizeof(Stored) == 2 ? 7 : 6)
    one_token_kernel(device_batch rows, time_mix_parameters of) {
  constexpr unsigned size = packet<Stored>::size, packets = head_size / size;
  __shared__ shared_tile<1> tile;
  let_next_kernel_begin();
  const sequence_run run = rows.runs[blockIdx.y];
  if (blockIdx.y >= rows.counts->runs) return wait_for_kernels_before();
  const bool makes_vectors = threadIdx.x >= head_size;
  const std::uint32_t channel = blockIdx.x * head_size + threadIdx.x % warp_width * lane_channels;
  Stored* const head = reinterpret_cast<Stored*>(static_cast<char*>(of.state) + run.slot * of.slot_bytes) +
                       static_cast<std::size_t>(blockIdx.x) * head_size * head_size;
  packet<Stored> state[packets];
  if (makes_vectors) {
    const head_weights weights = load_weights(of, channel);
    wait_for_kernels_before();
    fill_tile<Element, Stored>(of, run.first_row, channel, weights, tile, 0);
  } else {
#pragma unroll
    for (unsigned p = 0; p < packets; ++p)
      state[p] = load_packet_once(head + head_state_index<Stored>(threadIdx.x, p * size));
    wait_for_kernels_before();
  }
  __syncthreads();
  if (!makes_vectors) tile.y[0][threadIdx.x] = take_token(state, head, tile);
  __syncthreads();
  if (makes_vectors) read_tile<Element>(of, run.first_row, channel, tile, 0);
}

}  // namespace

result<void> time_mix(stream_handle in, const device_batch& rows, element type, element state_type,
                      const time_mix_parameters& of) {
  check(of.width % head_size == 0);
  check(state_type != element::bf16);
  for (const product_rows* gate : {&of.w_out, &of.a_out, &of.g_out, &of.v_out}) check(gate->parts == 0);
  const std::uint32_t heads = of.width / head_size;
  launch_shape shape{"time_mix", {heads, rows.room.runs}, {threads}, 0, in, true};
  return with_element(type, [&]<typename Element>() -> result<void> {
    const auto start = [&](auto in_floats, auto in_halves) {
      return state_type == element::f32 ? launch(shape, in_floats, rows, of) : launch(shape, in_halves, rows, of);
    };
    if (rows.room.runs < rows.room.rows || heads * rows.room.runs < many_heads)
      return start(time_mix_kernel<Element, float>, time_mix_kernel<Element, half>);
    shape.block = {one_token_threads};
    return start(one_token_kernel<Element, float>, one_token_kernel<Element, half>);
  });
}

}  // namespace skein::kernels::gpu
