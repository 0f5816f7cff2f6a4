#pragma once
#include "kernels/gpu/device/codes.cuh"

/// Decodes NF4 with a table in shared memory. With one in registers (codes.cuh), eight codes take some 21 instructions
/// that an SM of Hopper executes at half rate, and with few rows executing them took longer than loading the codes.
/// With this table there are eight, and four loads.
namespace skein::kernels::gpu {

/// The two weights of each byte, not scaled, once for each lane, so that the loads of a warp have no bank conflicts:
/// [byte][lane]. As group_decoder.
template <typename Element>
class nf4_pairs {
 public:
  static constexpr std::uint32_t table_bytes = 256 * 32 * 4;
  static constexpr float sum_factor = 1;

  /// Thread `thread` of `threads` writes its part of the table.
  __device__ static void fill(std::byte* table, unsigned thread, unsigned threads) {
    constexpr codes::nf4_table values = codes::make_nf4_table<Element>();
    for (unsigned i = thread; i < table_bytes / 16; i += threads) {
      std::uint32_t pair = 0, none = 0;
      codes::values_of_four<Element>(i / 8, values, pair, none);
      *reinterpret_cast<uint4*>(table + i * 16) = {pair, pair, pair, pair};
    }
  }
  /// `table`: aligned to 128 bytes.
  __device__ explicit nf4_pairs(const std::byte* table) : own_(table + threadIdx.x % 32 * 4) {}

  __device__ void begin(scale_pair scales) {
#pragma unroll
    for (unsigned upper = 0; upper < 2; ++upper) scales_[upper] = one_scale(scales, upper);
  }
  __device__ void operator()(const code_words<weight_element::nf4>& words, unsigned upper, unsigned step,
                             std::uint32_t (&to)[2]) const {
#pragma unroll
    for (unsigned q = 0; q < 2; ++q)
      to[q] = codes::product<Element>(pair_of(words.of[0], 2 * step + q), scales_[upper]);
  }

 private:
  __device__ std::uint32_t pair_of(std::uint32_t word, unsigned byte) const {
    const std::uint32_t at = (byte == 0 ? word << 7 : word >> (8 * byte - 7)) & 255 * 128;
    return load_word(own_ + at);
  }

  const std::byte* own_;
  std::uint32_t scales_[2] = {};
};

}  // namespace skein::kernels::gpu
