#pragma once
#include <bit>

#include "kernels/gpu/runtime/emulator/emulator.hpp"
#include "kernels/gpu/runtime/emulator/fibers.hpp"

/// The matrix instructions of AMD GPUs, for device/matrix_core.cuh: D[16, 16] = A[16, 16] B[16, 16] + C with 16-bit
/// operands and fp32 sums, in the layouts of the ISA documents. Registers have two operands each. A sum is a chain of
/// multiply-adds in ascending order of k; what a card does is not published.
namespace skein::kernels::gpu::emulator {

/// A[0 .. 15][k] and B[k][0 .. 15] as the lanes of a warp hold them: of each, `count` adjacent k per lane.
template <typename Element, unsigned count>
class shown_operand {
 public:
  shown_operand(const std::uint32_t (&own)[count / 2], const std::source_location& where) {
    auto& runner = block_runner::of_this_thread();
    for (unsigned i = 0; i < count / 4; ++i) {
      const std::uint64_t* const all = runner.exchange(own[2 * i] | std::uint64_t{own[2 * i + 1]} << 32, where);
      std::copy_n(all, warp_width, words_[i]);
    }
  }
  [[nodiscard]] float at(unsigned lane, unsigned element) const {
    const auto bits = static_cast<std::uint16_t>(words_[element / 4][lane] >> 16 * (element % 4));
    return to_float(std::bit_cast<Element>(bits));
  }
  [[nodiscard]] bool equal(unsigned lane, unsigned other) const {
    for (const auto& word : words_)
      if (word[lane] != word[other]) return false;
    return true;
  }

 private:
  std::uint64_t words_[count / 4][warp_width];
};

/// v_mfma_f32_16x16x16_f16 and _bf16_1k, warps of 64: lane l holds A[l % 16][4 (l / 16) ..], B[4 (l / 16) ..][l % 16]
/// and D[4 (l / 16) ..][l % 16], four of each.
template <typename Element>
void mfma(float (&c)[4], const std::uint32_t (&a)[2], const std::uint32_t (&b)[2],
          const std::source_location& where = std::source_location::current()) {
  const shown_operand<Element, 4> as(a, where), bs(b, where);
  const unsigned lane = block_runner::of_this_thread().lane(), m = lane / 16 * 4, n = lane % 16;
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned k = 0; k < 16; ++k) c[i] += as.at(k / 4 * 16 + m + i, k % 4) * bs.at(k / 4 * 16 + n, k % 4);
}

/// v_wmma_f32_16x16x16_f16 and _bf16 of RDNA 3, warps of 32: lane l holds A[l % 16][0 ..] and B[0 ..][l % 16], all 16
/// of them, so the second half of the warp repeats the first; and D[2 i + l / 16][l % 16] for i = 0 .. 7.
template <typename Element>
void wmma_11(float (&c)[8], const std::uint32_t (&a)[8], const std::uint32_t (&b)[8],
             const std::source_location& where = std::source_location::current()) {
  const shown_operand<Element, 16> as(a, where), bs(b, where);
  auto& runner = block_runner::of_this_thread();
  const unsigned lane = runner.lane(), n = lane % 16;
  if (!as.equal(n, n + 16) || !bs.equal(n, n + 16)) runner.fail("the halves of a warp have different operands");
  for (unsigned i = 0; i < 8; ++i)
    for (unsigned k = 0; k < 16; ++k) c[i] += as.at(2 * i + lane / 16, k) * bs.at(n, k);
}

/// The same of RDNA 4: lane l holds A[l % 16][8 (l / 16) ..], B[8 (l / 16) ..][l % 16] and D[8 (l / 16) ..][l % 16],
/// eight of each.
template <typename Element>
void wmma_12(float (&c)[8], const std::uint32_t (&a)[4], const std::uint32_t (&b)[4],
             const std::source_location& where = std::source_location::current()) {
  const shown_operand<Element, 8> as(a, where), bs(b, where);
  const unsigned lane = block_runner::of_this_thread().lane(), m = lane / 16 * 8, n = lane % 16;
  for (unsigned i = 0; i < 8; ++i)
    for (unsigned k = 0; k < 16; ++k) c[i] += as.at(k / 8 * 16 + m + i, k % 8) * bs.at(k / 8 * 16 + n, k % 8);
}

}  // namespace skein::kernels::gpu::emulator
