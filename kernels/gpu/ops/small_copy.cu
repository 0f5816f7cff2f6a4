#include "kernels/gpu/ops/small_copy.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "kernels/gpu/device/vec.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned small_copy_threads = 256;
constexpr std::size_t small_copy_blocks_max = 32;

__global__ void __launch_bounds__(small_copy_threads)
    small_copy_kernel(float* to, const float* from, std::size_t packets) {
  constexpr std::size_t size = packet<float>::size;
  for (std::size_t i = std::size_t{blockIdx.x} * small_copy_threads + threadIdx.x; i < packets;
       i += gridDim.x * small_copy_threads)
    store_packet(to + i * size, load_packet(from + i * size));
}

bool is_aligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % small_copy_unit == 0; }

}  // namespace

result<void> queue_small_copy(stream_handle in, void* to, const void* from, std::size_t bytes) {
  static_assert(sizeof(packet<float>) == small_copy_unit);
  check(is_aligned(to));
  check(is_aligned(from));
  check(bytes % small_copy_unit == 0);
  const std::size_t packets = bytes / small_copy_unit;
  if (packets == 0) return {};
  const auto blocks =
      static_cast<unsigned>(std::min((packets + small_copy_threads - 1) / small_copy_threads, small_copy_blocks_max));
  return launch({"small copy", {blocks}, {small_copy_threads}, 0, in}, small_copy_kernel, static_cast<float*>(to),
                static_cast<const float*>(from), packets);
}

}  // namespace skein::kernels::gpu
