#pragma once
#include "kernels/gpu/time_mix/time_mix_rows.cuh"

/// One token of a head by 64 threads, each with a whole row of the state as it was stored.
namespace skein::kernels::gpu {

/// Processes the token of a tile of one for the row of the state that this thread has; returns y of the row.
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
    float updated[size];
#pragma unroll
    for (unsigned q = 0; q < size / 4; ++q) {
      const auto w = four(tile.w[0], p, q), k = four(tile.k[0], p, q), a_kk = four(tile.a_kk[0], p, q);
      const auto r = four(tile.r[0], p, q);
      float& sum = of_lanes[p % row_lanes];
#pragma unroll
      for (unsigned j = 0; j < 4; ++j) {
        const float before = to_float(state[p].values[4 * q + j]);
        updated[4 * q + j] = update(before, removed, v, w.values[j], a_kk.values[j], k.values[j]);
        sum = multiply_add(updated[4 * q + j], r.values[j], sum);
      }
    }
    from_floats(updated, state[p].values);
    store_packet(head + head_state_index<Stored>(threadIdx.x, p * size), state[p]);
  }
  return sum_of_lanes(of_lanes);
}

}  // namespace skein::kernels::gpu
