// Latency of dependent matrix instructions, as in a GEMM of few rows: 2,048 inputs, read repeatedly from two tiles of
// 64 in shared memory. Also compares the bits of `mma.sync` and `wgmma`. See README.md.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/gpu/device/tile_copy.cuh"
#include "kernels/gpu/device/warp.cuh"
#include "kernels/gpu/device/wgmma.cuh"

using namespace skein::kernels::gpu;

namespace {

constexpr int stages = 16, a_stage = 8;  // instructions of 16 inputs
constexpr unsigned weight_tile = 64 * 128, threads = 128, sums_max = 512;
enum class way { one_group, groups, groups_waited_for, gemm, registers, loaded, loaded_gemm };

template <int columns>
struct __align__(1024) shared_memory {
  unsigned char weights[2 * weight_tile], inputs[2 * columns * 128];
  phase_barrier weights_there[stages], inputs_there[stages], empty[stages];
};

__device__ void load_four(unsigned (&to)[4], unsigned at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at));
}
__device__ void load_two(unsigned (&to)[2], unsigned at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "r"(at));
}
__device__ void multiply(float* c, const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <int columns>
__device__ bool is_there(shared_memory<columns>& memory, int stage) {
  return all_lanes(memory.weights_there[stage].is_over(0) && memory.inputs_there[stage].is_over(0));
}

template <way how, int columns>
__device__ void by_warpgroup(shared_memory<columns>& memory, float (&sums)[columns / 2]) {
  const descriptor weights = tile_descriptor(memory.weights), inputs = tile_descriptor(memory.inputs);
  if (how == way::one_group) wgmma_begin();
#pragma unroll 1
  for (int stage = 0; stage < stages; ++stage) {
    if (how == way::gemm && !is_there(memory, stage)) {
      wgmma_wait<0>();
      memory.weights_there[stage].wait(0);
    }
    if (how != way::one_group) wgmma_begin();
#pragma unroll
    for (int k = 0; k < a_stage; ++k)
      wgmma<half, columns>(sums, weights + k / 4 * (weight_tile / 16) + k % 4 * 2,
                           inputs + k / 4 * (columns * 128 / 16) + k % 4 * 2, k > 0 || stage > 0);
    if (how == way::one_group) continue;
    wgmma_commit();
    if (how == way::groups_waited_for) wgmma_wait<0>();
    if (how == way::groups) wgmma_wait<1>();
    if (how != way::gemm || stage == 0) continue;
    wgmma_wait<1>();
    if (threadIdx.x % 32 == 0) memory.empty[stage - 1].arrive();
  }
  if (how == way::one_group) wgmma_commit();
  wgmma_wait<0>();
}

template <way how, int columns>
__device__ void by_warps(shared_memory<columns>& memory, float* sums) {
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const unsigned output = warp * 16 + lane / 8 % 2 * 8 + lane % 8, row = lane % 8;
  const unsigned weights = shared_address(memory.weights) + output * 128,
                 inputs = shared_address(memory.inputs) + row * 128;
  unsigned a[a_stage][4], b[a_stage][2];
  const auto load = [&](int k) {
    load_four(a[k], weights + k / 4 * weight_tile + ((k % 4 * 2 + lane / 16 ^ output & 7) << 4));
    load_two(b[k], inputs + k / 4 * columns * 128 + ((k % 4 * 2 + lane / 8 % 2 ^ row & 7) << 4));
  };
  if (how == way::registers) load(0);
#pragma unroll 1
  for (int stage = 0; stage < stages; ++stage) {
    if (how == way::loaded_gemm && !is_there(memory, stage)) memory.weights_there[stage].wait(0);
    if (how != way::registers) {
#pragma unroll
      for (int k = 0; k < a_stage; ++k) load(k);
    }
    if (how == way::loaded_gemm) {
      __syncwarp();
      if (lane == 0) memory.empty[stage].arrive();
    }
#pragma unroll
    for (int k = 0; k < a_stage; ++k)
      multiply(sums, a[how == way::registers ? 0 : k], b[how == way::registers ? 0 : k]);
  }
}

template <way how, int columns>
__global__ void __launch_bounds__(threads, 2) chain(const unsigned char* from, float* out, long long* cycles) {
  extern __shared__ unsigned char memory_of_launch[];
  using memory_type = shared_memory<columns>;
  auto& memory =
      *reinterpret_cast<memory_type*>(memory_of_launch + (1024 - shared_address(memory_of_launch) % 1024) % 1024);
  for (unsigned i = threadIdx.x; i < sizeof memory.weights + sizeof memory.inputs; i += threads)
    memory.weights[i] = from[i];
  if (threadIdx.x == 0) {
    for (int i = 0; i < stages; ++i) {
      memory.weights_there[i].init(1), memory.inputs_there[i].init(1), memory.empty[i].init(threads / 32);
      publish_barriers();
      memory.weights_there[i].arrive(), memory.inputs_there[i].arrive();
    }
  }
  publish_writes();
  __syncthreads();
  float sums[columns / 2] = {};
  const long long begin = clock64();
  if constexpr (how < way::registers)
    by_warpgroup<how, columns>(memory, sums);
  else
    by_warps<how, columns>(memory, sums);
  const long long end = clock64();
  if (blockIdx.x > 0) return;
  if (threadIdx.x == 0) *cycles = end - begin;
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = sums[i];
}

unsigned char* numbers;
float* out;
long long* cycles;
float first[sums_max];

template <way how, int columns>
void time_chain(const char* name, int blocks) {
  constexpr std::size_t bytes = 90'000;  // two blocks fill an SM
  cudaFuncSetAttribute(chain<how, columns>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  long long took = 0;
  float sums[sums_max];
  for (int warm = 0; warm < 3; ++warm) chain<how, columns><<<blocks, threads, bytes>>>(numbers, out, cycles);
  cudaMemcpy(&took, cycles, sizeof took, cudaMemcpyDeviceToHost);
  cudaMemcpy(sums, out, sizeof sums, cudaMemcpyDeviceToHost);
  if (how == way::one_group && columns == 8) memcpy(first, sums, sizeof sums);
  int other = 0;
  for (unsigned i = 0; i < sums_max; ++i) other += memcmp(&sums[i], &first[i], sizeof(float)) != 0;
  printf("%-52s %3d blocks: %5.1f cycles each, %4.0f per stage", name, blocks, took / double(stages * a_stage),
         took / double(stages));
  if (columns == 8 && how != way::registers) printf("; bits differ from the first in %d of %u", other, sums_max);
  printf("\n");
}

}  // namespace

int main() {
  static unsigned char random[2 * weight_tile + 2 * 64 * 128];
  for (std::size_t i = 0; i < sizeof random / sizeof(half); ++i) {
    const half number = __float2half(2 * (rand() / (float)RAND_MAX) - 1);
    memcpy(random + i * sizeof number, &number, sizeof number);
  }
  cudaMalloc(&numbers, sizeof random), cudaMalloc(&out, sizeof first), cudaMalloc(&cycles, sizeof *cycles);
  cudaMemcpy(numbers, random, sizeof random, cudaMemcpyHostToDevice);
  for (const int blocks : {1, 264}) {
    time_chain<way::one_group, 8>("wgmma, 8 columns, one group", blocks);
    time_chain<way::groups, 8>("groups of 8, one in flight", blocks);
    time_chain<way::groups_waited_for, 8>("groups of 8, each waited for", blocks);
    time_chain<way::gemm, 8>("and barriers, as in a GEMM", blocks);
    time_chain<way::one_group, 32>("32 columns, one group", blocks);
    time_chain<way::gemm, 32>("32 columns, as in a GEMM", blocks);
    time_chain<way::one_group, 64>("64 columns, one group", blocks);
    time_chain<way::registers, 8>("mma.sync, operands in registers", blocks);
    time_chain<way::loaded, 8>("mma.sync, with ldmatrix", blocks);
    time_chain<way::loaded_gemm, 8>("and barriers, as in a GEMM", blocks);
  }
  const cudaError_t outcome = cudaDeviceSynchronize();
  if (outcome != cudaSuccess) printf("%s\n", cudaGetErrorString(outcome));
  return outcome == cudaSuccess ? 0 : 1;
}
