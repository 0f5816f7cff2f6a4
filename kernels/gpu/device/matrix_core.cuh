#pragma once
#include "kernels/gpu/device/vec.cuh"
#include "kernels/gpu/device/warp.cuh"
#if defined(SKEIN_GPU_EMULATOR)
#include "kernels/gpu/runtime/emulator/matrix_core.hpp"
#endif

/// c[16, 16] += a[16 outputs, depth] * b[16 rows, depth]^T of a warp over 16-bit elements, with fp32 sums, by what AMD
/// GPUs have: MFMA (CDNA), WMMA (RDNA 3 and RDNA 4, whose layouts differ) or dot products of two (RDNA 2; also any
/// other GPU, by fused multiply-adds). The emulator has all of them that fit its warps.
/// Layouts: the ISA documents of CDNA 2, CDNA 3, RDNA 3 and RDNA 4, chapters on matrix instructions.
///
/// Of a and b a lane holds `elements` adjacent inputs from first_input(lane) on, of output or row `lane` % 16; with dot
/// products, of several outputs and rows. Of c it has `runs` rows, of each `adjacent` outputs from first_output(lane)
/// on.
namespace skein::kernels::gpu {

/// On a card only the native one is used.
enum class matrix_unit : std::uint8_t { native, mfma, wmma_11, wmma_12, dot };

#if defined(__gfx90a__) || defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__) || defined(__gfx950__)
inline constexpr matrix_unit native_unit = matrix_unit::mfma;
#elif defined(__GFX12__)
inline constexpr matrix_unit native_unit = matrix_unit::wmma_12;
#elif defined(__GFX11__)
inline constexpr matrix_unit native_unit = matrix_unit::wmma_11;
#else
inline constexpr matrix_unit native_unit = matrix_unit::dot;
#endif

/// Words of two elements, of `rows` outputs or rows.
template <unsigned rows, unsigned elements>
struct unit_operand {
  std::uint32_t words[rows][elements / 2];
};

template <matrix_unit unit>
struct unit_layout;

/// The three kinds of matrix instructions: 16 inputs deep.
template <unsigned elements_, unsigned adjacent_>
struct core_layout {
  static constexpr unsigned depth = 16, elements = elements_, runs = 1, adjacent = adjacent_;
  static constexpr unsigned sums = runs * adjacent;
  static constexpr unsigned outputs_of_lane = 1, rows_of_lane = 1;  // of the operands
  __device__ static unsigned output(unsigned lane, unsigned) { return lane % 16; }
  __device__ static unsigned row(unsigned lane, unsigned) { return lane % 16; }
  __device__ static unsigned first_input(unsigned lane) { return elements == 16 ? 0 : lane / 16 * elements; }
  __device__ static unsigned first_output(unsigned lane) { return lane / 16 * adjacent; }
};
template <>
struct unit_layout<matrix_unit::mfma> : core_layout<4, 4> {};
/// Both halves of a warp hold the same operands.
template <>
struct unit_layout<matrix_unit::wmma_11> : core_layout<16, 8> {};
template <>
struct unit_layout<matrix_unit::wmma_12> : core_layout<8, 8> {};
template <>
struct unit_layout<matrix_unit::dot> {
  static constexpr unsigned depth = 8, elements = 8, runs = 2, adjacent = 16 / (warp_width / 8);
  static constexpr unsigned sums = runs * adjacent;
  static constexpr unsigned outputs_of_lane = adjacent, rows_of_lane = runs;
  __device__ static unsigned output(unsigned lane, unsigned i) { return lane / 8 * adjacent + i; }
  __device__ static unsigned row(unsigned lane, unsigned i) { return lane % 8 * runs + i; }
  __device__ static unsigned first_input(unsigned) { return 0; }
  __device__ static unsigned first_output(unsigned lane) { return lane / 8 * adjacent; }
};

template <matrix_unit unit>
struct unit_operands {
  using layout = unit_layout<unit>;
  using a = unit_operand<layout::outputs_of_lane, layout::elements>;
  using b = unit_operand<layout::rows_of_lane, layout::elements>;
  using c = float[layout::sums];
};

#if defined(__HIP_DEVICE_COMPILE__)
namespace amd {

template <typename Number, unsigned count>
using vector = Number __attribute__((ext_vector_type(count)));

template <typename To, typename From>
__device__ To same_bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

/// Elements as the instruction for fp16 or bf16 takes them.
template <typename Element, unsigned elements, typename Words>
__device__ auto elements_of(const Words& words) {
  if constexpr (std::is_same_v<Element, half>)
    return same_bits<vector<_Float16, elements>>(words);
  else
    return same_bits<vector<short, elements>>(words);
}

}  // namespace amd
#endif

/// c = a.x b.x + a.y b.y + c
template <typename Element>
__device__ float dot_two(std::uint32_t a, std::uint32_t b, float c) {
#if defined(__HIP_DEVICE_COMPILE__) && (defined(__gfx1030__) || defined(__gfx1031__) || defined(__gfx1032__) || \
                                        defined(__gfx1033__) || defined(__gfx1034__) || defined(__gfx1035__) || \
                                        defined(__gfx1036__) || defined(__gfx906__) || defined(__gfx908__))
  if constexpr (std::is_same_v<Element, half>)
    return __builtin_amdgcn_fdot2(amd::same_bits<amd::vector<_Float16, 2>>(a),
                                  amd::same_bits<amd::vector<_Float16, 2>>(b), c, false);
#endif
  Element as[2], bs[2];
  memcpy(as, &a, sizeof as);
  memcpy(bs, &b, sizeof bs);
  return multiply_add(to_float(as[1]), to_float(bs[1]), multiply_add(to_float(as[0]), to_float(bs[0]), c));
}

/// The sums of an instruction are those of its inputs in any order, so only the same order in a and b matters for what
/// it computes; where the order is known, inputs ascend.
template <matrix_unit unit, typename Element>
__device__ void multiply_units(typename unit_operands<unit>::c& c, const typename unit_operands<unit>::a& a,
                               const typename unit_operands<unit>::b& b) {
  using layout = unit_layout<unit>;
  if constexpr (unit == matrix_unit::dot) {
#pragma unroll
    for (unsigned w = 0; w < layout::elements / 2; ++w)
#pragma unroll
      for (unsigned r = 0; r < layout::runs; ++r)
#pragma unroll
        for (unsigned o = 0; o < layout::adjacent; ++o) {
          float& sum = c[r * layout::adjacent + o];
          sum = dot_two<Element>(a.words[o][w], b.words[r][w], sum);
        }
  } else {
#if defined(SKEIN_GPU_EMULATOR)
    if constexpr (unit == matrix_unit::mfma)
      emulator::mfma<Element>(c, a.words[0], b.words[0]);
    else if constexpr (unit == matrix_unit::wmma_11)
      emulator::wmma_11<Element>(c, a.words[0], b.words[0]);
    else
      emulator::wmma_12<Element>(c, a.words[0], b.words[0]);
#elif defined(__HIP_DEVICE_COMPILE__)
    [[maybe_unused]] constexpr bool halves = std::is_same_v<Element, half>;
    [[maybe_unused]] const auto as = amd::elements_of<Element, layout::elements>(a.words[0]);
    [[maybe_unused]] const auto bs = amd::elements_of<Element, layout::elements>(b.words[0]);
    auto sums = amd::same_bits<amd::vector<float, layout::sums>>(c);
#if defined(__gfx90a__) || defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__) || defined(__gfx950__)
    if constexpr (halves)
      sums = __builtin_amdgcn_mfma_f32_16x16x16f16(as, bs, sums, 0, 0, 0);
    else
      sums = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(as, bs, sums, 0, 0, 0);
#elif defined(__GFX12__)
    if constexpr (halves)
      sums = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(as, bs, sums);
    else
      sums = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(as, bs, sums);
#elif defined(__GFX11__)
    if constexpr (halves)
      sums = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(as, bs, sums);
    else
      sums = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(as, bs, sums);
#endif
    __builtin_memcpy(&c, &sums, sizeof c);
#endif
  }
}

/// Brings the sums of a lane in the order of unit_layout. Only on RDNA 3 they are not: there a lane has every second
/// output, and the lane 16 places away the others.
template <matrix_unit unit>
__device__ void arrange_sums([[maybe_unused]] typename unit_operands<unit>::c& c, [[maybe_unused]] unsigned lane) {
  if constexpr (unit == matrix_unit::wmma_11) {
    const bool low = lane < 16;
    float arranged[8];
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      const float got = shuffle_xor(low ? c[4 + i] : c[i], 16);
      arranged[2 * i] = low ? c[i] : got;
      arranged[2 * i + 1] = low ? got : c[4 + i];
    }
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) c[i] = arranged[i];
  }
}

}  // namespace skein::kernels::gpu
