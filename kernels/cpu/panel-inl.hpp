// How tiles divide a packed panel among vectors; included once per Highway target, after hwy/highway.h.
#if defined(SKEIN_KERNELS_CPU_PANEL_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef SKEIN_KERNELS_CPU_PANEL_INL_HPP
#undef SKEIN_KERNELS_CPU_PANEL_INL_HPP
#else
#define SKEIN_KERNELS_CPU_PANEL_INL_HPP
#endif

#include <cstddef>

#include "hwy/highway.h"
#include "kernels/cpu/packed_matrix.hpp"
#include "kernels/cpu/vector_math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace skein::kernels::cpu::HWY_NAMESPACE {

constexpr std::size_t lanes = hn::MaxLanes(floats());
constexpr std::size_t half_panel = panel_outputs / 2;
constexpr std::size_t strips_per_panel = half_panel / lanes;
constexpr std::size_t accumulators_max = lanes == 16 ? 24 : 12;  // of 32 or 16 vector registers
constexpr std::size_t tile_rows_max = accumulators_max / 2;
constexpr std::size_t prefetch_lines = 64;  // per stream; 24 costs 10 % at 8 rows (bench/kernels/matmul_bench)

constexpr std::size_t strips_for(std::size_t rows) {
  return rows * 8 <= accumulators_max ? 4 : rows * 4 <= accumulators_max ? 2 : 1;
}

// The panels that a tile reads and the rows that it multiplies by them, starting at some input.
struct tile_source {
  const std::byte* in;      // floats, or 16-bit integers for quantised weights
  std::size_t in_stride;    // bytes
  const std::byte* groups;  // coded_group of the first row and group, for quantised weights
  const std::byte* line;    // of the task's first panel
  std::size_t panel_bytes;
  std::size_t inputs;
  std::size_t group;  // inputs that share a scale; all of them if the matrix is not quantised
  bool first;         // sums start at zero; else they continue
  bool half_scales;   // scales are fp16, else bf16
};

// Dwords of two bf16 as two vectors of floats: the low and the high halves.
HWY_INLINE void widen_pairs(floats d, const std::byte* from, float_vector& low, float_vector& high) {
  const hn::RebindToUnsigned<floats> du;
  const auto pairs = hn::LoadU(du, reinterpret_cast<const std::uint32_t*>(from));
  low = hn::BitCast(d, hn::ShiftLeft<16>(pairs));
  high = hn::BitCast(d, hn::And(pairs, hn::Set(du, 0xffff0000u)));
}

}  // namespace skein::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
