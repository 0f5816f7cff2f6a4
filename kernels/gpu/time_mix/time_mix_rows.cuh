#pragma once
#include "kernels/gpu/time_mix/head_state.cuh"
#include "kernels/gpu/time_mix/time_mix_token.cuh"

/// A block's share of one head: eight lanes have two rows of the state in registers. The vectors of a token that all
/// rows need are in shared memory.
namespace skein::kernels::gpu {

inline constexpr unsigned row_lanes = 8;  // that share rows of the state
inline constexpr unsigned lane_rows = 2;
inline constexpr unsigned lane_keys = head_size / row_lanes;
inline constexpr unsigned row_threads_of_head = head_size / lane_rows * row_lanes;

/// r, w, k, kk and a_kk in the order of row_part::position, the others by channel.
template <unsigned places>
struct alignas(16) shared_tile {
  float r[places][head_size], w[places][head_size], k[places][head_size], v[places][head_size];
  float kk[places][head_size], a_kk[places][head_size], y[places][head_size];
  // Read by their owner only.
  float bonus[places][head_size], g[places][head_size];
};

/// One key of a row of the state: S <- S diag(w) - (S kk) (a * kk)^T + v k^T.
__device__ inline float update(float state, float removed, float v, float w, float a_kk, float k) {
  return multiply_add(v, k, multiply_add(-removed, a_kk, state * w));
}

/// The result that sum_of_row gives the lanes of a row, from their numbers.
__device__ inline float sum_of_lanes(const float (&of)[row_lanes]) {
  static_assert(row_lanes == 8);
  return ((of[0] + of[1]) + (of[2] + of[3])) + ((of[4] + of[5]) + (of[6] + of[7]));
}

/// A lane's part of its rows of the state: whole packets of keys, every eighth packet of a row.
template <typename Stored>
struct row_part {
  static constexpr unsigned size = packet<Stored>::size;
  static constexpr unsigned fours = lane_keys / 4;
  struct packets {
    packet<Stored> of[lane_rows][lane_keys / size];
  };
  /// The rows are `first_value` and the value four further; those of a warp's lanes are adjacent.
  std::uint32_t first_value, lane;
  float s[lane_rows][lane_keys];

  __device__ row_part() {
    constexpr unsigned groups = warp_width / row_lanes;  // per warp
    first_value = threadIdx.x / warp_width * groups * lane_rows + threadIdx.x % warp_width / row_lanes;
    lane = threadIdx.x % row_lanes;
  }
  __device__ std::uint32_t value(unsigned row) const { return first_value + row * (warp_width / row_lanes); }
  /// The position of a key of a vector in shared memory: lanes that read four keys each read 128 contiguous bytes.
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

  /// Updates the rows with a token; y = S r of the rows, in all their lanes.
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

  /// The sum over the lanes that share a row.
  __device__ static float sum_of_row(float value) {
    for (unsigned mask = 1; mask < row_lanes; mask *= 2) value += shuffle_xor(value, mask);
    return value;
  }

 private:
  /// The elements of a vector for the lane's keys 4i .. 4i + 4.
  __device__ packet<float> four(const float* vector, unsigned i) const {
    return load_packet(vector + (i * row_lanes + lane) * 4);
  }
};

/// Computes a token's vectors.
template <typename Element, typename Stored, unsigned places>
__device__ void fill_tile(const time_mix_parameters& of, std::uint32_t row, std::uint32_t channel,
                          const token_inputs& in, const head_weights& weights, shared_tile<places>& tile,
                          std::uint32_t t) {
  token_vectors made = make_token(in, weights, of.first_layer);
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

/// ln_x of a lane's channels; like all weights, loaded before the data is available.
struct norm_weights_of_lane {
  of_lane weight, bias;

  norm_weights_of_lane() = default;
  __device__ norm_weights_of_lane(const time_mix_parameters& from, std::uint32_t channel) {
    load_floats(from.ln_x_weight + channel, weight);
    load_floats(from.ln_x_bias + channel, bias);
  }
};

template <typename Element, unsigned places>
__device__ void read_tile(const time_mix_parameters& of, std::uint32_t row, std::uint32_t channel,
                          const norm_weights_of_lane& norm, const shared_tile<places>& tile, std::uint32_t t) {
  const std::uint32_t first = channel % head_size;
  of_lane y, bonus, g;
  load_floats(&tile.y[t][first], y);
  load_floats(&tile.bonus[t][first], bonus);
  load_floats(&tile.g[t][first], g);
  finish_token<Element>(of, row, channel, y, norm.weight, norm.bias, bonus, g);
}

}  // namespace skein::kernels::gpu
