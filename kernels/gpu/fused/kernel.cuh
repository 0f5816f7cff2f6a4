// A launch of led_matmul. Its first blocks do the work of the leader and count themselves as done. The blocks of the
// products behind them have requested their first weights when they wait for that count, and the second ones for the
// count of the first ones (device/phase_count.cuh). Blocks begin in the order of their numbers, so those that are
// waited for have begun.
//
// The leader may not read what another of its blocks writes. What products replace (partial sums, inputs of the first
// products) was read before, because they wait for the blocks that read it.
#pragma once
#include "kernels/gpu/device/phase_count.cuh"
#include "kernels/gpu/fused/led_matmul.hpp"
#include "kernels/gpu/fused/mix_head.cuh"
#include "kernels/gpu/fused/shift_slice.cuh"
#include "kernels/gpu/gemm/mma/kernel.cuh"

namespace skein::kernels::gpu::mma {

struct led_gemms : placed_gemms {
  device_batch batch;
  bool shifts;         ///< the leader is a token shift
  bool states_of_f32;  ///< of time mixing
  shift_cut cut;
  token_shift_parameters shift;
  time_mix_parameters mix;
  std::uint32_t leaders;     ///< blocks
  std::size_t leader_bytes;  ///< of dynamic shared memory
  phase_count led, firsts;   ///< of the leader, and of the first products
};

// What multiply() and run_tile() call instead of the functions for placed_gemms.
__device__ inline bool waits(const led_gemms&, const work_item&) { return true; }
__device__ inline void await_inputs(const led_gemms& all, const work_item& work) {
  const phase_count& phase = work.gemm->when == turn::second ? all.firsts : all.led;
  if (threadIdx.x == 0) phase.await_writers();
  __syncthreads();
  if (threadIdx.x == 0) phase.count_reader();
}
__device__ inline void count_done(const led_gemms& all) { all.firsts.count_writer(); }

template <typename Element>
__device__ void lead(const led_gemms& all, std::uint32_t block) {
  if (all.shifts) {
    shift_slice<Element>(all.batch, all.shift, all.cut, block);
  } else {
    const std::uint32_t heads = all.mix.width / head_size, number = block / heads, head = block % heads;
    const sequence_run run = all.batch.runs[number];  // beyond the count it is meaningless, but may be read
    if (number < all.batch.counts->runs) {
      if (all.states_of_f32)
        mix_head<Element, float>(all.mix, run, head);
      else
        mix_head<Element, half>(all.mix, run, head);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) all.led.count_writer();
}

/// Four blocks fit in the registers of an SM.
template <typename Element, typename t>
__global__ void __launch_bounds__(t::threads, 4) led_matmul_kernel(const __grid_constant__ led_gemms all) {
#if defined(SKEIN_GPU_EMULATOR) || __CUDA_ARCH__ >= 750
  static_assert(t::threads == leader_threads);
  if (blockIdx.x < all.leaders) return lead<Element>(all, blockIdx.x);
  run_plain_tile_of<Element, t>(all, find_work<t>(all, blockIdx.x - all.leaders));
#endif
}

/// Some products have quantised weights, all with one kind of code.
template <typename Element, typename t, weight_element code>
__global__ void __launch_bounds__(t::threads, 4) led_coded_kernel(const __grid_constant__ led_gemms all) {
#if defined(SKEIN_GPU_EMULATOR) || __CUDA_ARCH__ >= 750
  if (blockIdx.x < all.leaders) return lead<Element>(all, blockIdx.x);
  run_coded_tile_of<Element, t, code>(all, find_work<t>(all, blockIdx.x - all.leaders));
#endif
}

}  // namespace skein::kernels::gpu::mma
