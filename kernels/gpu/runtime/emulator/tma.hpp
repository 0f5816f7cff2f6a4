#pragma once
#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

#include "kernels/gpu/runtime/emulator/early_reads.hpp"
#include "kernels/gpu/runtime/emulator/emulator.hpp"

/// The emulator's implementation of device/tile_copy.cuh: TMA and mbarriers of sm_90. A copy happens at some time
/// between its issue and the wait for it.
namespace skein::kernels::gpu {

/// A tensor map: up to three dimensions, the innermost first, and the box that one copy transfers. Strides in bytes; a
/// swizzled box is 128 bytes wide.
struct CUtensorMap {
  std::byte* data = nullptr;
  std::uint32_t element_bytes = 0;
  std::uint64_t sizes[3] = {1, 1, 1}, strides[3] = {};
  std::uint32_t box[3] = {1, 1, 1};
  bool swizzles = true;
};

namespace emulator {

/// An mbarrier: counts threads and bytes, in shared memory; it is as large as the hardware's.
struct counting_barrier {
  static constexpr std::uint8_t mark = 0xb5;
  std::uint8_t made, expected, missing, parity;  ///< parity: of the current phase
  std::int32_t bytes;

  void init(unsigned arrivals) {
    *this = {mark, static_cast<std::uint8_t>(arrivals), static_cast<std::uint8_t>(arrivals), 0, 0};
  }
  void require_made() const {
    if (made != mark) block_runner::of_this_thread().fail("a barrier was used before it was initialised");
  }
  void arrive(unsigned announced_bytes) {
    require_made();
    if (missing == 0) block_runner::of_this_thread().fail("more threads arrive at a barrier than it expects");
    --missing, bytes += static_cast<std::int32_t>(announced_bytes);
    settle();
  }
  void receive(unsigned count) { bytes -= static_cast<std::int32_t>(count), settle(); }
  [[nodiscard]] bool is_over(unsigned phase) const { return parity != (phase & 1); }
  void wait(unsigned phase, const std::source_location& where) const {
    require_made();
    block_runner::of_this_thread().wait_until([this, phase] { return is_over(phase); }, where);
  }

 private:
  void settle() {
    if (missing == 0 && bytes == 0) parity ^= 1, missing = expected;
  }
};

/// The address at which TMA stores the byte that belongs at `at` (128-byte swizzle): the index of a 16-byte piece in a
/// row of 128 bytes is XORed with the row's number modulo eight.
inline std::byte* swizzled(std::byte* at) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  return reinterpret_cast<std::byte*>(address ^ ((address >> 7 & 7) << 4));
}

/// Calls visit(shared, global, bytes) for the 16-byte pieces of a box at (x, y, z); `bytes` is how many lie inside the
/// map.
template <typename Visit>
void for_box(const CUtensorMap& map, std::byte* shared, const std::uint32_t (&from)[3], Visit visit) {
  const std::uint32_t piece = 16 / map.element_bytes;
  for (std::uint32_t z = from[2]; z < from[2] + map.box[2]; ++z)
    for (std::uint32_t y = from[1]; y < from[1] + map.box[1]; ++y)
      for (std::uint32_t x = from[0]; x < from[0] + map.box[0]; x += piece, shared += 16) {
        const bool inside = x < map.sizes[0] && y < map.sizes[1] && z < map.sizes[2];
        const std::size_t elements = inside ? std::min<std::size_t>(piece, map.sizes[0] - x) : 0;
        visit(map.swizzles ? swizzled(shared) : shared,
              map.data + x * map.strides[0] + y * map.strides[1] + z * map.strides[2], elements * map.element_bytes);
      }
}

inline void require_aligned(const void* shared, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(shared) % bytes != 0)
    block_runner::of_this_thread().fail("the shared memory address of a copy is not aligned");
}

inline void fetch_box(void* to, const CUtensorMap& map, std::uint32_t x, std::uint32_t y, std::uint32_t z,
                      counting_barrier& arrived) {
  require_aligned(to, map.swizzles ? 1024 : 128);
  if (const auto* const reads = early_reads::current())
    for_box(map, static_cast<std::byte*>(to), {x, y, z},
            [&](std::byte*, const std::byte* global, std::size_t bytes) { reads->check(global, bytes); });
  block_runner::of_this_thread().do_later([=, &arrived] {
    for_box(map, static_cast<std::byte*>(to), {x, y, z}, [](std::byte* shared, const std::byte* global, auto bytes) {
      std::memcpy(shared, global, bytes);
      std::memset(shared + bytes, 0, 16 - bytes);
    });
    arrived.receive(map.box[0] * map.box[1] * map.box[2] * map.element_bytes);
  });
}

inline void fetch_bytes(void* to, const void* from, unsigned bytes, counting_barrier& arrived) {
  require_aligned(to, 16);
  if (const auto* const reads = early_reads::current()) reads->check(static_cast<const std::byte*>(from), bytes);
  block_runner::of_this_thread().do_later([=, &arrived] {
    std::memcpy(to, from, bytes);
    arrived.receive(bytes);
  });
}

/// The bulk groups of a thread's stores, in order; a group is complete when all stores in it and before it are done.
struct sent_groups {
  std::uint64_t block = 0;
  std::vector<unsigned> open;  ///< by group: pending stores. The last group is not ended.

  [[nodiscard]] static sent_groups& of_this_thread() {
    thread_local std::deque<sent_groups> of_blocks;  // for all blocks of a cluster; a deque: elements do not move
    const auto& runner = block_runner::of_this_thread();
    if (of_blocks.size() <= runner.thread_number()) of_blocks.resize(runner.thread_number() + 1);
    sent_groups& mine = of_blocks[runner.thread_number()];
    if (mine.block != runner.blocks_begun()) mine = {runner.blocks_begun(), {0}};
    return mine;
  }
  void send(std::function<void()> work) {
    const std::size_t group = open.size() - 1;
    ++open[group];
    block_runner::of_this_thread().do_later([this, group, work = std::move(work)] { work(), --open[group]; });
  }
  void end_group() { open.push_back(0); }
  void wait(unsigned left, const std::source_location& where) const {
    const auto over = [this, left] {
      return std::all_of(open.begin(), open.end() - std::min<std::ptrdiff_t>(left + 1, std::ssize(open)),
                         [](unsigned missing) { return missing == 0; });
    };
    block_runner::of_this_thread().wait_until(over, where);
  }
};

inline void send_box(const void* from, const CUtensorMap& map, std::uint32_t x, std::uint32_t y, std::uint32_t z,
                     bool adds) {
  require_aligned(from, 1024);
  sent_groups::of_this_thread().send([=] {
    auto* const shared = static_cast<std::byte*>(const_cast<void*>(from));
    for_box(map, shared, {x, y, z}, [&](const std::byte* own, std::byte* global, std::size_t bytes) {
      if (!adds) {
        std::memcpy(global, own, bytes);
        return;
      }
      for (std::size_t i = 0; i < bytes; i += sizeof(float)) {
        float sum, addend;
        std::memcpy(&sum, global + i, sizeof sum), std::memcpy(&addend, own + i, sizeof addend);
        sum += addend;
        std::memcpy(global + i, &sum, sizeof sum);
      }
    });
  });
}

inline void send_bytes(void* to, const void* from, unsigned bytes) {
  require_aligned(from, 16);
  sent_groups::of_this_thread().send([=] { std::memcpy(to, from, bytes); });
}

}  // namespace emulator
}  // namespace skein::kernels::gpu
