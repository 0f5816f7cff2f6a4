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
// When there are many one-token runs, as many blocks as find room take eight heads at a time: the vectors of all are
// made at once, and while one state is at work those of the next heads are on their way. Floor: the bytes of the
// states, read and written.
#include "kernels/gpu/time_mix.hpp"

#include <algorithm>

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
constexpr std::uint32_t heads_each = 8;  // of a block that takes many
constexpr unsigned tile_places = tile_tokens > heads_each ? tile_tokens : heads_each;
constexpr std::uint32_t many_blocks = 256;  // 128 took longer than a block a head

/// r, w, k, kk and a_kk in the order of row_part::position, the others by channel.
struct alignas(16) shared_tile {
  float r[tile_places][head_size], w[tile_places][head_size], k[tile_places][head_size], v[tile_places][head_size];
  float kk[tile_places][head_size], a_kk[tile_places][head_size], y[tile_places][head_size];
  // These are read by their owner only.
  float bonus[tile_places][head_size], g[tile_places][head_size];
};

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

  /// S <- S diag(w) - (S kk) (a * kk)^T + v k^T; y = S r of the rows, in all their lanes.
  __device__ void take(const shared_tile& tile, std::uint32_t t, float (&y)[lane_rows]) {
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
          const float kept = multiply_add(-removed[row], a_kk.values[j], state * w.values[j]);
          const float updated = multiply_add(v[row], k.values[j], kept);
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
template <typename Element, typename Stored>
__device__ void fill_tile(const time_mix_parameters& of, std::uint32_t row, std::uint32_t channel,
                          const head_weights& weights, shared_tile& tile, std::uint32_t t) {
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

template <typename Element>
__device__ void read_tile(const time_mix_parameters& of, std::uint32_t row, std::uint32_t channel,
                          const shared_tile& tile, std::uint32_t t) {
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
  __shared__ shared_tile tile;
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

/// The same for runs of one row each, by blocks that take several heads of a run in turn, and then those of another:
/// each head has the place of a token of a tile. While the heads of one item are at work, the states of those behind
/// them are on their way, also while vectors are made and outputs finished. Of two tiles one is at work; see the
/// barrier.
template <typename Element, typename Stored>
__global__ void __launch_bounds__(threads, blocks_each) many_heads_kernel(device_batch rows, time_mix_parameters of) {
  constexpr unsigned ahead = sizeof(Stored) == 2 ? 4 : 2;  // states on their way to a block; pairs of them
  constexpr std::uint32_t head_floats = head_size * head_size;
  static_assert(heads_each % ahead == 0);
  __shared__ shared_tile tiles[2];
  let_next_kernel_begin();
  const std::uint32_t all_heads = of.width / head_size, groups = (all_heads + heads_each - 1) / heads_each;
  const std::uint32_t items = rows.counts->runs * groups;
  // Of an item by its number. Asked for again where it is wanted: registers are what this kernel is short of.
  const auto first_head = [&](std::uint32_t item) { return item % groups * heads_each; };
  const auto heads_of = [&](std::uint32_t item) {
    if (item >= items) return std::uint32_t{0};
    const std::uint32_t left = all_heads - first_head(item);
    return left < heads_each ? left : heads_each;
  };
  const auto state_of = [&](std::uint32_t item) {
    return reinterpret_cast<Stored*>(static_cast<char*>(of.state) + rows.runs[item / groups].slot * of.slot_bytes) +
           static_cast<std::size_t>(first_head(item)) * head_floats;
  };
  std::uint32_t item = blockIdx.x, heads = heads_of(item);
  if (heads == 0) return wait_for_kernels_before();
  Stored* state = state_of(item);
  typename row_part<Stored>::packets loaded[ahead] = {};
#pragma unroll
  for (unsigned i = 0; i < ahead; ++i)
    if (i < heads) loaded[i] = row_part<Stored>().load(state + i * head_floats);
  wait_for_kernels_before();

  const std::uint32_t warp = threadIdx.x / warp_width, lane_channel = threadIdx.x % warp_width * lane_channels;
  const auto fill = [&](std::uint32_t of_item, shared_tile& tile) {
    for (std::uint32_t h = warp; h < heads_of(of_item); h += tile_tokens) {
      const std::uint32_t channel = (first_head(of_item) + h) * head_size + lane_channel;
      fill_tile<Element, Stored>(of, rows.runs[of_item / groups].first_row, channel, load_weights(of, channel), tile,
                                 h);
    }
  };
  fill(item, tiles[0]);
  __syncthreads();
  for (unsigned turn = 0;; turn ^= 1) {
    shared_tile& tile = tiles[turn];
    const std::uint32_t next = item + gridDim.x, next_heads = heads_of(next);
    Stored* const next_state = next_heads > 0 ? state_of(next) : state;
    // Two heads at a time: one has no sums to wait for while the other has.
    for (std::uint32_t base = 0; base < heads_each; base += ahead)
#pragma unroll
      for (unsigned i = 0; i < ahead; i += 2) {
        const std::uint32_t h = base + i;
        row_part<Stored> two[2];
        float y[2][lane_rows];
        for (unsigned of_two = 0; of_two < 2; ++of_two) two[of_two].unpack(loaded[i + of_two]);
        for (unsigned of_two = 0; of_two < 2; ++of_two) {
          const std::uint32_t later = h + of_two + ahead;
          const bool is_next = later >= heads_each;
          if (is_next ? later - heads_each < next_heads : later < heads)
            loaded[i + of_two] = two[of_two].load(is_next ? next_state + (later - heads_each) * head_floats
                                                          : state + later * head_floats);
        }
        if (h >= heads) continue;
        // An odd last head has a neighbour that is nobody: the place of a tile that was never filled, thrown away.
        for (unsigned of_two = 0; of_two < 2; ++of_two) two[of_two].take(tile, h + of_two, y[of_two]);
        for (unsigned of_two = 0; of_two < 2; ++of_two) {
          if (h + of_two >= heads) break;
          const auto& part = two[of_two];
          if (part.lane < lane_rows)
            tile.y[h + of_two][part.value(part.lane)] = part.lane == 0 ? y[of_two][0] : y[of_two][1];
          part.store(state + (h + of_two) * head_floats);
        }
      }
    fill(next, tiles[turn ^ 1]);
    // Behind it y is whole and the next vectors are there. What is written to a tile beyond the next barrier but one
    // was read before that one: vectors before this barrier, and y, bonus and g by the warp that made them.
    __syncthreads();
    for (std::uint32_t h = warp; h < heads; h += tile_tokens)
      read_tile<Element>(of, rows.runs[item / groups].first_row, (first_head(item) + h) * head_size + lane_channel,
                         tile, h);
    if (next_heads == 0) return;
    item = next, heads = next_heads, state = next_state;
  }
}

}  // namespace

result<void> time_mix(stream_handle in, const device_batch& rows, element type, element state_type,
                      const time_mix_parameters& of) {
  check(of.width % head_size == 0);
  check(state_type != element::bf16);
  for (const product_rows* gate : {&of.w_out, &of.a_out, &of.g_out, &of.v_out}) check(gate->parts == 0);
  const std::uint32_t heads = of.width / head_size, groups = (heads + heads_each - 1) / heads_each;
  launch_shape shape{"time_mix", {heads, rows.room.runs}, {threads}, 0, in, true};
  const auto multiprocessors = multiprocessor_count();
  if (!multiprocessors) return multiprocessors.error();
  return with_element(type, [&]<typename Element>() -> result<void> {
    if (rows.room.runs < rows.room.rows || groups * rows.room.runs < many_blocks)
      return state_type == element::f32 ? launch(shape, time_mix_kernel<Element, float>, rows, of)
                                        : launch(shape, time_mix_kernel<Element, half>, rows, of);
    shape.grid = {std::min(groups * rows.room.runs, *multiprocessors * blocks_each)};
    return state_type == element::f32 ? launch(shape, many_heads_kernel<Element, float>, rows, of)
                                      : launch(shape, many_heads_kernel<Element, half>, rows, of);
  });
}

}  // namespace skein::kernels::gpu
