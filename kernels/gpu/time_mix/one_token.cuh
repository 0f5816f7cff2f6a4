#pragma once
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/time_mix/time_mix_rows.cuh"

/// One token of a head by 64 threads, each with a whole row of the state as it was stored. They add in the order in
/// which the lanes of a row would (row_part). So only y and the vectors, which a warp of their own computes, pass
/// between threads, a block is small, and an SM has many heads in flight at once.
namespace skein::kernels::gpu {

// The host of AMD GPUs does not know how wide a warp is. There, and in the emulator, a warp may be left over.
#if defined(__CUDACC__)
inline constexpr unsigned one_token_threads = head_size + warp_width;
#else
inline constexpr unsigned one_token_threads = 2 * head_size;
#endif
/// Blocks of an SM, limited by registers.
template <typename Stored>
inline constexpr unsigned one_token_blocks = sizeof(Stored) == 2 ? 7 : 6;

/// The work of a block: a head of a run of one row. `work` has the parameters `of`, a type `tile` for shared memory,
/// and
///   fill(row, channel, tile)    loads weights, calls pdl_wait, and computes the vectors of a lane's channels
///   take(state, head, tile)     as take_token
///   finish(row, channel, tile)  computes the output of a lane's channels
template <typename Stored, typename Work>
__device__ void run_one_token(const device_batch& rows, const Work& work) {
  constexpr unsigned size = packet<Stored>::size, packets = head_size / size;
  __shared__ typename Work::tile tile;
  pdl_launch_dependents();
  const sequence_run run = rows.runs[blockIdx.y];
  if (blockIdx.y >= rows.counts->runs) return pdl_wait();
  const bool makes_vectors = threadIdx.x >= head_size;
  const bool is_left_over = one_token_threads > head_size + warp_width && threadIdx.x >= head_size + warp_width;
  const std::uint32_t channel = blockIdx.x * head_size + threadIdx.x % warp_width * lane_channels;
  Stored* const head = reinterpret_cast<Stored*>(static_cast<char*>(work.of.state) + run.slot * work.of.slot_bytes) +
                       static_cast<std::size_t>(blockIdx.x) * head_size * head_size;
  packet<Stored> state[packets];
  if (is_left_over) {
    pdl_wait();
  } else if (makes_vectors) {
    work.fill(run.first_row, channel, tile);
  } else {
#pragma unroll
    for (unsigned p = 0; p < packets; ++p)
      state[p] = load_packet_once(head + head_state_index<Stored>(threadIdx.x, p * size));
    pdl_wait();
  }
  __syncthreads();
  if (!makes_vectors) tile.y[0][threadIdx.x] = work.take(state, head, tile);
  __syncthreads();
  if (makes_vectors && !is_left_over) work.finish(run.first_row, channel, tile);
}

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
