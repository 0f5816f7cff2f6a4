#pragma once
#include "kernels/gpu/device/convert.cuh"

/// Access to several elements at once; 16 bytes are the widest access of a thread.
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

/// For data that no other thread loads and that is overwritten before it is read again, so that it need not take space
/// in the caches. A hint, if the compiler has one.
template <typename Element>
__device__ packet<Element> load_packet_once(const Element* at) {
#if defined(__CUDA_ARCH__)
  union {
    uint4 bits;
    packet<Element> values;
  } loaded{__ldcs(reinterpret_cast<const uint4*>(at))};
  return loaded.values;
#else
  return load_packet(at);
#endif
}

/// Elements that are loaded or stored in one access.
template <typename Element, unsigned count>
struct alignas(count * sizeof(Element)) side_by_side {
  Element values[count];
};
/// `at` is aligned to the size of all of them.
template <unsigned count, typename Element>
__device__ side_by_side<Element, count> load_side_by_side(const Element* at) {
  return *reinterpret_cast<const side_by_side<Element, count>*>(at);
}

/// Elements whose load is issued now and waited for when they are read. Until then they stay in the words that were
/// loaded: compilers take an array of elements apart at once, and so would wait for the load.
template <typename Element, unsigned count>
class on_their_way {
 public:
  on_their_way() = default;
  /// `at` is aligned to the size of all of them.
  __device__ explicit on_their_way(const Element* at) : words_(*reinterpret_cast<const words*>(at)) {}

  __device__ void read(float (&values)[count]) const {
    Element elements[count];
    memcpy(elements, &words_, sizeof elements);
    for (unsigned i = 0; i < count; ++i) values[i] = to_float(elements[i]);
  }

 private:
  using word = std::conditional_t<count * sizeof(Element) % 4 == 0, std::uint32_t, std::uint16_t>;
  struct alignas(count * sizeof(Element)) [[gnu::may_alias]] words {
    word of[count * sizeof(Element) / sizeof(word)];
  };
  words words_;
};

/// values[i] = at[i], in one access; `at` is aligned to the size of all of them.
template <typename Element, unsigned count>
__device__ void load_floats(const Element* at, float (&values)[count]) {
  const auto loaded = load_side_by_side<count>(at);
  for (unsigned i = 0; i < count; ++i) values[i] = to_float(loaded.values[i]);
}
/// at[i] = values[i], likewise.
template <typename Element, unsigned count>
__device__ void store_floats(Element* at, const float (&values)[count]) {
  side_by_side<Element, count> stored;
  from_floats(values, stored.values);
  *reinterpret_cast<side_by_side<Element, count>*>(at) = stored;
}

/// a * b + c, rounded once. Kernels are compiled without contraction, so that a sum has the same bits in every kernel
/// and variant that computes it. Fused multiply-adds are written explicitly.
__device__ inline float multiply_add(float a, float b, float c) {
#if defined(SKEIN_GPU_EMULATOR)
  return a * b + c;  // rounded twice: a library call for each would dominate the run time
#else
  return fmaf(a, b, c);
#endif
}

/// 2^x by the hardware's approximation, and 0 if that is below the smallest normal float.
__device__ inline float power_of_two(float x) {
#if defined(__CUDA_ARCH__)
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#else
  return exp2f(x);
#endif
}

/// The hardware's approximations, accurate to about 2^-20; exact functions take several times the instructions.
__device__ inline float inverse_root(float x) {
#if defined(__CUDA_ARCH__)
  float root;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
#else
  return 1 / sqrtf(x);
#endif
}
/// The logistic function of v, for x = -log2(e) v.
__device__ inline float quick_logistic(float x) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(1 + power_of_two(x)));
  return result;
#else
  return 1 / (1 + exp2f(x));
#endif
}

}  // namespace skein::kernels::gpu
