#pragma once
#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/time_mix/one_token.cuh"

/// Time mixing of one head of a run of one row, as one_token_kernel of time_mix/time_mix.cu does it, in blocks of 128
/// threads: two warps have the state, the third one computes the vectors, and the last one only keeps up.
namespace skein::kernels::gpu {

template <typename Element, typename Stored>
__device__ void mix_head(const time_mix_parameters& of, const sequence_run& run, std::uint32_t head_number) {
  constexpr unsigned size = packet<Stored>::size, packets = head_size / size;
  auto& tile = *dynamic_shared<shared_tile<1>>();
  const bool has_state = threadIdx.x < head_size, makes_vectors = threadIdx.x / warp_width == head_size / warp_width;
  const std::uint32_t channel = head_number * head_size + threadIdx.x % warp_width * lane_channels;
  Stored* const head = reinterpret_cast<Stored*>(static_cast<char*>(of.state) + run.slot * of.slot_bytes) +
                       static_cast<std::size_t>(head_number) * head_size * head_size;
  packet<Stored> state[packets];
  norm_weights_of_lane norm;
  if (has_state) {
#pragma unroll
    for (unsigned p = 0; p < packets; ++p)
      state[p] = load_packet_once(head + head_state_index<Stored>(threadIdx.x, p * size));
  } else if (makes_vectors) {
    const head_weights weights = load_weights(of, channel);
    norm = norm_weights_of_lane(of, channel);
    fill_tile<Element, Stored>(of, run.first_row, channel, load_inputs<Element>(of, run.first_row, channel), weights,
                               tile, 0);
  }
  __syncthreads();
  if (has_state) tile.y[0][threadIdx.x] = take_token(state, head, tile);
  __syncthreads();
  if (makes_vectors) read_tile<Element>(of, run.first_row, channel, norm, tile, 0);
}

}  // namespace skein::kernels::gpu
