#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>

#include "kernels/gpu/runtime/emulator/emulator.hpp"
#include "kernels/gpu/runtime/emulator/fibers.hpp"
#include "kernels/gpu/runtime/emulator/tma.hpp"

/// The emulator's implementation of device/mma.cuh and device/wgmma.cuh.
namespace skein::kernels::gpu::emulator {

/// Whether operands are rounded. A test that checks an algorithm without rounding switches it off.
inline thread_local bool operands_round = true;

/// Rounds to fp16; values beyond its range become its largest value.
inline float as_operand(float value) {
  if (!operands_round) return value;
  return half_to_float(float_to_half(std::clamp(value, -65504.0f, 65504.0f)));
}

inline std::uint64_t both(const float (&pair)[2]) {
  return std::bit_cast<std::uint32_t>(pair[0]) | std::uint64_t{std::bit_cast<std::uint32_t>(pair[1])} << 32;
}
inline float one_of(std::uint64_t both, unsigned which) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(both >> 32 * which));
}

/// c += a b in the layout of device/mma.cuh, sums in order of k.
inline void multiply_tiles(float (&c)[4], const float (&a)[4][2], const float (&b)[2][2],
                           const std::source_location& where = std::source_location::current()) {
  auto& runner = block_runner::of_this_thread();
  const unsigned lane = runner.lane(), g = lane / 4, t = lane % 4;
  float rows[2][16], columns[2][16];
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint64_t* const of_a = runner.exchange(both(a[i]), where);
    for (unsigned k = 0; k < 8; ++k) rows[i % 2][i / 2 * 8 + k] = one_of(of_a[4 * g + k / 2], k % 2);
  }
  for (unsigned i = 0; i < 2; ++i) {
    const std::uint64_t* const of_b = runner.exchange(both(b[i]), where);
    for (unsigned column = 0; column < 2; ++column)
      for (unsigned k = 0; k < 8; ++k) columns[column][i * 8 + k] = one_of(of_b[4 * (2 * t + column) + k / 2], k % 2);
  }
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned k = 0; k < 16; ++k) c[i] += rows[i / 2][k] * columns[i % 2][k];
}

/// Transposes 8 x 8 numbers: a lane gives row g, columns 2t and 2t + 1, and gets the same elements of the transpose.
inline void transpose(float first, float second, float& first_turned, float& second_turned,
                      const std::source_location& where = std::source_location::current()) {
  auto& runner = block_runner::of_this_thread();
  const unsigned lane = runner.lane(), g = lane / 4, t = lane % 4;
  const std::uint64_t* const all = runner.exchange(both({first, second}), where);
  first_turned = one_of(all[4 * (2 * t) + g / 2], g % 2);
  second_turned = one_of(all[4 * (2 * t + 1) + g / 2], g % 2);
}

/// Stores `count` matrices of 8 x 8 elements of 16 bits, of which a lane has column g, rows 2t and 2t + 1: row r of
/// matrix i goes to the address that lane 8 i + r gives.
template <unsigned count>
void store_turned(void* row, const std::uint32_t (&pairs)[count],
                  const std::source_location& where = std::source_location::current()) {
  auto& runner = block_runner::of_this_thread();
  const unsigned lane = runner.lane(), g = lane / 4, t = lane % 4;
  const std::uint64_t* const rows = runner.exchange(reinterpret_cast<std::uintptr_t>(row), where);
  for (unsigned i = 0; i < count; ++i)
    for (unsigned e = 0; e < 2; ++e)
      reinterpret_cast<std::uint16_t*>(rows[8 * i + 2 * t + e])[g] = static_cast<std::uint16_t>(pairs[i] >> 16 * e);
}

/// ldmatrix over four 8 x 8 matrices: row r of matrix i is at the address that lane 8 i + r gives.
inline void load_fragments(const void* row, std::uint32_t (&to)[4],
                           const std::source_location& where = std::source_location::current()) {
  auto& runner = block_runner::of_this_thread();
  const unsigned lane = runner.lane(), g = lane / 4, t = lane % 4;
  const std::uint64_t* const rows = runner.exchange(reinterpret_cast<std::uintptr_t>(row), where);
  for (unsigned i = 0; i < 4; ++i) to[i] = reinterpret_cast<const std::uint32_t*>(rows[8 * i + g])[t];
}

/// c += a b over 16-bit elements in the layout of device/mma.cuh: the 16 products are summed in order, then added.
template <typename Element>
void multiply_fragments(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                        const std::source_location& where = std::source_location::current()) {
  auto& runner = block_runner::of_this_thread();
  const unsigned lane = runner.lane(), g = lane / 4, t = lane % 4;
  const auto element = [](std::uint64_t pair, unsigned which) {
    const auto bits = static_cast<std::uint16_t>(pair >> 16 * which);
    return to_float(std::bit_cast<Element>(bits));
  };
  float rows[2][16], columns[2][16];
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint64_t* const of_a = runner.exchange(a[i], where);
    for (unsigned k = 0; k < 8; ++k) rows[i % 2][i / 2 * 8 + k] = element(of_a[4 * g + k / 2], k % 2);
  }
  for (unsigned i = 0; i < 2; ++i) {
    const std::uint64_t* const of_b = runner.exchange(b[i], where);
    for (unsigned column = 0; column < 2; ++column)
      for (unsigned k = 0; k < 8; ++k) columns[column][i * 8 + k] = element(of_b[4 * (2 * t + column) + k / 2], k % 2);
  }
  for (unsigned i = 0; i < 4; ++i) {
    float sum = 0;
    for (unsigned k = 0; k < 16; ++k) sum += rows[i / 2][k] * columns[i % 2][k];
    c[i] += sum;
  }
}

/// The cp.async copies of a thread, of zeros if `from` is null. Each is made at once, or when it is waited for.
class async_copies {
 public:
  [[nodiscard]] static async_copies& of_this_thread() {
    thread_local std::vector<async_copies> of_block(1024);
    const auto& runner = block_runner::of_this_thread();
    if (runner.thread_number() >= of_block.size()) of_block.resize(2 * runner.thread_number());
    async_copies& mine = of_block[runner.thread_number()];
    if (mine.block_ != runner.blocks_begun()) mine = {};
    mine.block_ = runner.blocks_begun();
    return mine;
  }

  void begin(void* to, const void* from) {
    begun_.push_back({ended_groups_, to, from});
    if (block_runner::of_this_thread().any_below(4) == 0) finish(~std::uint64_t{0});
  }
  void end_group() { ++ended_groups_; }
  /// Waits for all groups except the last `left`.
  void wait(unsigned left) {
    if (ended_groups_ > left) finish(ended_groups_ - left);
  }

 private:
  struct pending {
    std::uint64_t group;
    void* to;
    const void* from;
  };
  void finish(std::uint64_t before_group) {
    for (; !begun_.empty() && begun_.front().group < before_group; begun_.pop_front())
      if (begun_.front().from)
        std::memcpy(begun_.front().to, begun_.front().from, 16);
      else
        std::memset(begun_.front().to, 0, 16);
  }

  std::uint64_t block_ = 0, ended_groups_ = 0;
  std::deque<pending> begun_;
};

/// The wgmma instructions that a thread's warpgroup runs asynchronously. Each is executed at once, or when it is waited
/// for.
class warpgroup_gemms {
 public:
  [[nodiscard]] static warpgroup_gemms& of_this_thread() {
    thread_local std::vector<warpgroup_gemms> of_block(1024);
    const auto& runner = block_runner::of_this_thread();
    warpgroup_gemms& mine = of_block[runner.thread_number()];
    if (mine.block_ != runner.blocks_begun()) mine = {};
    mine.block_ = runner.blocks_begun();
    return mine;
  }

  void begin(std::function<void()> instruction) {
    auto& runner = block_runner::of_this_thread();
    ++runner.owed();
    begun_.push_back({ended_groups_, std::move(instruction)});
    if (runner.any_below(2) == 0) finish(~std::uint64_t{0});
  }
  void end_group() { ++ended_groups_; }
  /// Waits for all groups except the last `left`.
  void wait(unsigned left) {
    if (ended_groups_ > left) finish(ended_groups_ - left);
    block_runner::of_this_thread().owed() = static_cast<unsigned>(begun_.size());
  }

 private:
  struct pending {
    std::uint64_t group;
    std::function<void()> instruction;
  };
  // In order, because they accumulate into the same sums.
  void finish(std::uint64_t before_group) {
    while (!begun_.empty() && begun_.front().group < before_group) begun_.front().instruction(), begun_.pop_front();
  }

  std::uint64_t block_ = 0, ended_groups_ = 0;
  std::deque<pending> begun_;
};

/// The inputs that one instruction multiplies: 32 bytes of a row.
template <typename Operand>
inline constexpr unsigned depth_of_operand = 32 / sizeof(Operand);

/// Loads 32 bytes of a row of a tile in shared memory; a descriptor is the tile's address / 16.
template <typename Operand>
void load_tile_row(std::uint64_t descriptor, unsigned row, float (&to)[depth_of_operand<Operand>]) {
  constexpr unsigned in_piece = 16 / sizeof(Operand);
  for (unsigned k = 0; k < depth_of_operand<Operand>; k += in_piece) {
    auto* const at = reinterpret_cast<std::byte*>((descriptor << 4) + row * 128 + k * sizeof(Operand));
    const auto* const piece = reinterpret_cast<const Operand*>(swizzled(at));
    for (unsigned i = 0; i < in_piece; ++i) to[k + i] = to_float(piece[i]);
  }
}

/// sums = (keep_sums ? sums : 0) + weights * inputs for the two outputs of a thread, whose weights are given, and all
/// columns of a tile. The products of an instruction are summed in order, then added.
template <typename Operand, int columns>
void multiply_two_outputs(float* sums, const float (&weights)[2][depth_of_operand<Operand>], std::uint64_t inputs,
                          unsigned lane, bool keep_sums) {
  constexpr unsigned depth = depth_of_operand<Operand>;
  using four = float __attribute__((vector_size(16)));  // of two outputs and two columns
  four a[depth];
  for (unsigned k = 0; k < depth; ++k) a[k] = four{weights[0][k], weights[0][k], weights[1][k], weights[1][k]};
  for (unsigned j = 0; j < columns / 4; j += 2) {
    float both[2][depth];
    for (unsigned e = 0; e < 2; ++e) load_tile_row<Operand>(inputs, 4 * j + 2 * (lane % 4) + e, both[e]);
    four gemms = {};
    for (unsigned k = 0; k < depth; ++k) gemms += a[k] * four{both[0][k], both[1][k], both[0][k], both[1][k]};
    for (unsigned i = 0; i < 4; ++i) sums[2 * j + i] = (keep_sums ? sums[2 * j + i] : 0) + gemms[i];
  }
}

/// Begins sums = (keep_sums ? sums : 0) + weights [64, depth] * inputs [columns, depth]^T, in the layout of
/// device/wgmma.cuh.
template <typename Operand, int columns>
void begin_gemms(float (&sums)[columns / 2], std::uint64_t weights, std::uint64_t inputs, bool keep_sums) {
  const unsigned thread = now.thread_index.x % 128, warp = thread / 32, lane = thread % 32;
  warpgroup_gemms::of_this_thread().begin([=, sums = &sums[0]] {
    float rows[2][depth_of_operand<Operand>];
    for (unsigned h = 0; h < 2; ++h) load_tile_row<Operand>(weights, 16 * warp + lane / 4 + 8 * h, rows[h]);
    multiply_two_outputs<Operand, columns>(sums, rows, inputs, lane, keep_sums);
  });
}

/// Begins sums += weights * inputs, with a warp's weights in the registers of its lanes.
template <typename Element, int columns>
void begin_gemms_of_registers(float (&sums)[columns / 2], const std::uint32_t (&weights)[4], std::uint64_t inputs,
                              const std::source_location& where = std::source_location::current()) {
  auto& runner = block_runner::of_this_thread();
  const unsigned lane = runner.lane(), g = lane / 4;
  std::array<std::array<float, 16>, 2> rows;
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint64_t* const of_a = runner.exchange(weights[i], where);
    for (unsigned k = 0; k < 8; ++k) {
      const auto bits = static_cast<std::uint16_t>(of_a[4 * g + k / 2] >> 16 * (k % 2));
      rows[i % 2][i / 2 * 8 + k] = to_float(std::bit_cast<Element>(bits));
    }
  }
  warpgroup_gemms::of_this_thread().begin([=, sums = &sums[0]] {
    float both[2][16];
    for (unsigned h = 0; h < 2; ++h) std::ranges::copy(rows[h], both[h]);
    multiply_two_outputs<Element, columns>(sums, both, inputs, lane, true);
  });
}

}  // namespace skein::kernels::gpu::emulator
