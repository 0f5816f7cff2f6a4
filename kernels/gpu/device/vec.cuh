#pragma once
#include "kernels/gpu/device/convert.cuh"

/// 16 bytes at once, the widest access of a thread.
namespace skein::kernels::gpu {

template <typename Element>
struct alignas(16) packet {
  static constexpr unsigned size = 16 / sizeof(Element);
  Element values[size];
};

/// `at` is aligned to 16 bytes.
template <typename Element>
__device__ packet<Element> load_packet(const Element* at) {
  return *reinterpret_cast<const packet<Element>*>(at);
}
template <typename Element>
__device__ void store_packet(Element* at, const packet<Element>& values) {
  *reinterpret_cast<packet<Element>*>(at) = values;
}

/// a * b + c, rounded once. Kernels are compiled with contraction off, so that a sum has the same bits in every kernel
/// and variant that computes it; where a fused multiply-add is wanted, it is written.
__device__ inline float multiply_add(float a, float b, float c) {
#if defined(SKEIN_GPU_EMULATOR)
  return a * b + c;  // rounded twice: a library call for each would take longer than all else
#else
  return fmaf(a, b, c);
#endif
}

}  // namespace skein::kernels::gpu
