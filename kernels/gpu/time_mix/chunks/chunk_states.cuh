#pragma once
#include "kernels/gpu/time_mix/chunks/chunk_block.cuh"
#include "kernels/gpu/time_mix/head_state.cuh"

/// The states before and after a chunk: in the slot, or passed between blocks of one launch.
namespace skein::kernels::gpu {

/// The index of 4 numbers of a state that is passed from one chunk to the next; a lane transfers them at once.
__device__ inline std::size_t passed_at(unsigned strip, unsigned tile, unsigned lane) {
  return ((strip * tiles + tile) * 32 + lane) * 4;
}

/// Numbers are passed between blocks with all bits inverted, so that the initial 0 would be a NaN; that NaN is passed
/// as another one. So each number shows by itself that it has been written, and no flag has to follow it.
__device__ inline void pass(std::uint32_t* to, const tile_c& numbers) {
  std::uint32_t bits[4];
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) bits[i] = max(~float_to_bits(numbers[i]), 1u);
#if defined(__CUDA_ARCH__)
  asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(to), "r"(bits[0]), "r"(bits[1]), "r"(bits[2]),
               "r"(bits[3])
               : "memory");
#else
  for (unsigned i = 0; i < 4; ++i) to[i] = to[i] == 0 ? bits[i] : 1;  // a NaN if the previous one was not cleared
#endif
}
__device__ inline bool take(const std::uint32_t* from, tile_c& numbers) {
  std::uint32_t bits[4];
#if defined(__CUDA_ARCH__)
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(bits[0]), "=r"(bits[1]), "=r"(bits[2]), "=r"(bits[3])
               : "l"(from)
               : "memory");
#else
  for (unsigned i = 0; i < 4; ++i) bits[i] = from[i];
#endif
  bool there = true;
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) there = there && bits[i] != 0, numbers[i] = bits_to_float(~bits[i]);
  return there;
}
__device__ inline void take_state(const std::uint32_t* passed, unsigned strip, unsigned lane, result_rows& state) {
  for (;;) {
    bool there = true;
#pragma unroll
    for (unsigned tile = 0; tile < tiles; ++tile)
      there = take(passed + passed_at(strip, tile, lane), state[tile]) && there;
    if (there) return;
    while (!take(passed + passed_at(strip, tiles - 1, lane), state[tiles - 1])) {
    }
  }
}

/// Keys 8 tile + 2t and 8 tile + 2t + 1 of value g (row 0) or g + 8 (row 1) of 16 values.
template <typename Stored>
__device__ Stored* state_pair(void* head, unsigned strip, unsigned tile, unsigned row, const lane_place& at) {
  return static_cast<Stored*>(head) + head_state_index<Stored>(16 * strip + at.g + 8 * row, 8 * tile + 2 * at.t);
}
template <typename Stored>
__device__ void load_state(void* head, unsigned strip, const lane_place& at, result_rows& state) {
#pragma unroll
  for (unsigned tile = 0; tile < tiles; ++tile)
#pragma unroll
    for (unsigned row = 0; row < 2; ++row) {
      float pair[2];
      load_floats(state_pair<Stored>(head, strip, tile, row, at), pair);
      for (unsigned i = 0; i < 2; ++i) state[tile][2 * row + i] = pair[i] * value_scale;
    }
}
template <typename Stored>
__device__ void store_state(void* head, unsigned strip, const lane_place& at, const result_rows& state) {
#pragma unroll
  for (unsigned tile = 0; tile < tiles; ++tile)
#pragma unroll
    for (unsigned row = 0; row < 2; ++row) {
      float pair[2];
      for (unsigned i = 0; i < 2; ++i) pair[i] = state[tile][2 * row + i] * (1 / value_scale);
      store_floats(state_pair<Stored>(head, strip, tile, row, at), pair);
    }
}

/// The number as load_state would read it after store_state.
template <typename Stored>
__device__ float as_stored(float number) {
  return to_float(from_float<Stored>(number * (1 / value_scale))) * value_scale;
}

/// 16 values of the state as it passes through a chunk, scaled by value_scale.
struct state_strip {
  const run_chunk& chunk;
  std::uint32_t *passed, *passed_before;  ///< by this chunk and by the one before
  void* head;                             ///< in the slot
  bool in_16;
  unsigned strip;

  /// `states`: as in time_mix_parameters.
  __device__ state_strip(const chunk_list& list, const run_chunk& of_run, void* states, std::size_t slot_bytes,
                         bool state_in_16, unsigned which)
      : chunk(of_run), in_16(state_in_16), strip(which) {
    passed = list.passed + (std::size_t{blockIdx.y} * gridDim.x + blockIdx.x) * side * side;
    passed_before = passed - std::size_t{gridDim.x} * side * side;
    const std::size_t head_bytes = std::size_t{side * side} * (in_16 ? sizeof(half) : sizeof(float));
    head = static_cast<char*>(states) + chunk.slot * slot_bytes + blockIdx.x * head_bytes;
  }
  /// The state before the chunk.
  __device__ void take(const lane_place& at, result_rows& state) const {
    if (!chunk.begins)
      take_state(passed_before, strip, at.lane, state);
    else if (in_16)
      load_state<half>(head, strip, at, state);
    else
      load_state<float>(head, strip, at, state);
  }
  /// Passes on exactly what would be stored, so that results do not depend on the chunks between which a tick ends.
  __device__ void give(const result_rows& state, const lane_place& at) const {
    if (!chunk.ends) {
#pragma unroll
      for (unsigned tile = 0; tile < tiles; ++tile) {
        tile_c numbers;
        for (unsigned i = 0; i < 4; ++i) numbers[i] = in_16 ? as_stored<half>(state[tile][i]) : state[tile][i];
        pass(passed + passed_at(strip, tile, at.lane), numbers);
      }
    } else if (in_16) {
      store_state<half>(head, strip, at, state);
    } else {
      store_state<float>(head, strip, at, state);
    }
  }
  /// Marks the passed state as not written, for the next launch.
  __device__ void clear_taken(const lane_place& at) const {
    if (chunk.begins) return;
    const packet<std::uint32_t> nothing{};
#pragma unroll
    for (unsigned tile = 0; tile < tiles; ++tile)
      store_packet(passed_before + passed_at(strip, tile, at.lane), nothing);
  }
};

}  // namespace skein::kernels::gpu
