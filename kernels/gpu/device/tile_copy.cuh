#pragma once

#include <cstdint>

#include "kernels/gpu/runtime/runtime.hpp"
#if defined(SKEIN_GPU_EMULATOR)
#include "kernels/gpu/runtime/emulator/tma.hpp"
#endif

/// TMA of sm_90, and the mbarriers in shared memory that signal the arrival of copies (PTX ISA, "mbarrier" and
/// "cp.async.bulk.tensor"). CUDA; the emulator has the same.
namespace skein::kernels::gpu {

__device__ inline std::uint32_t shared_address(const void* at) {
#if defined(SKEIN_GPU_EMULATOR)
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(at));  // its lower bits, for alignment
#else
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(at));
#endif
}

/// The stages of a ring buffer in turn, counted over all work of a block; `t` gives their number.
template <typename t>
struct stage_turn {
  unsigned stage = 0, phase = 0;
  __device__ void next() {
    if (++stage == t::stages) stage = 0, ++phase;
  }
};

/// The L2 eviction policy of a copy.
enum class cache_use : std::uint64_t {
  streamed = 0x12F0000000000000,  ///< read once, or by all readers at about the same time: evicted first
  shared = 0x14F0000000000000,    ///< read by many blocks: evicted last
};

#if !defined(SKEIN_GPU_EMULATOR)

/// An mbarrier whose phases are numbered from 0. A phase ends when `arrivals` threads have arrived and all announced
/// bytes have been copied.
struct phase_barrier {
  std::uint64_t state;

  __device__ void init(unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&state)), "r"(arrivals));
  }
  __device__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&state)) : "memory");
  }
  __device__ void arrive_expecting(unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&state)), "r"(bytes)
                 : "memory");
  }
  /// Waits for the end of a phase with the parity of `phase`, which must be the current phase or the one before.
  __device__ void wait(unsigned phase) {
    asm volatile(
        "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra over;\n"
        "bra again;\nover:\n}\n" ::"r"(shared_address(&state)),
        "r"(phase & 1)
        : "memory");
  }
  /// Whether wait() would return at once.
  [[nodiscard]] __device__ bool is_over(unsigned phase) {
    std::uint32_t over;
    asm volatile(
        "{\n.reg .pred done;\nmbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\nselp.u32 %0, 1, 0, done;\n}\n"
        : "=r"(over)
        : "r"(shared_address(&state)), "r"(phase & 1)
        : "memory");
    return over != 0;
  }
};

/// Makes newly initialised barriers visible to TMA.
__device__ inline void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
}

/// Makes this thread's writes to shared memory visible to TMA and to matrix instructions.
__device__ inline void publish_writes() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/// Prefetches a tensor map, which is a kernel parameter.
__device__ inline void bring_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// Copies the map's box at (column, row) to `to` and reports its bytes to `arrived`.
__device__ inline void copy_tile(void* to, const CUtensorMap& map, std::uint32_t column, std::uint32_t row,
                                 phase_barrier& arrived, cache_use use) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(to)),
      "l"(&map), "r"(column), "r"(row), "r"(shared_address(&arrived.state)), "l"(static_cast<std::uint64_t>(use))
      : "memory");
}

/// The same with a map of describe_tiles: its box that begins at row `row` and tile `tile`. With one of
/// describe_blocks: at block `row` and panel `tile`.
__device__ inline void copy_tiles(void* to, const CUtensorMap& map, std::uint32_t row, std::uint32_t tile,
                                  phase_barrier& arrived, cache_use use) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared_address(to)),
      "l"(&map), "r"(0), "r"(row), "r"(tile), "r"(shared_address(&arrived.state)), "l"(static_cast<std::uint64_t>(use))
      : "memory");
}

/// Copies a box to (column, row, part) of the map, or adds it there in fp32. Elements beyond the map's edge are not
/// written.
__device__ inline void send_tile(const void* from, const CUtensorMap& map, std::uint32_t column, std::uint32_t row,
                                 std::uint32_t part, bool adds) {
  if (adds)
    asm volatile(
        "cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map),
        "r"(column), "r"(row), "r"(part), "r"(shared_address(from))
        : "memory");
  else
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map),
                 "r"(column), "r"(row), "r"(part), "r"(shared_address(from))
                 : "memory");
}
/// Ends a group of this thread's stores.
__device__ inline void end_of_sending() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/// Waits until at most `left` groups of this thread are still being read from shared memory.
template <int left>
__device__ void wait_until_sent() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(left) : "memory");
}
/// Waits until all stores of this thread are complete.
__device__ inline void wait_until_written() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

#else

struct phase_barrier {
  emulator::counting_barrier state;

  void init(unsigned arrivals) { state.init(arrivals); }
  void arrive() { state.arrive(0); }
  void arrive_expecting(unsigned bytes) { state.arrive(bytes); }
  void wait(unsigned phase, const std::source_location& where = std::source_location::current()) {
    state.wait(phase, where);
  }
  [[nodiscard]] bool is_over(unsigned phase) const { return state.is_over(phase); }
};
static_assert(sizeof(phase_barrier) == sizeof(std::uint64_t));

inline void publish_barriers() {}
inline void publish_writes() {}
inline void bring_map(const CUtensorMap&) {}
inline void copy_tile(void* to, const CUtensorMap& map, std::uint32_t column, std::uint32_t row, phase_barrier& arrived,
                      cache_use) {
  emulator::fetch_box(to, map, column, row, 0, arrived.state);
}
inline void copy_tiles(void* to, const CUtensorMap& map, std::uint32_t row, std::uint32_t tile, phase_barrier& arrived,
                       cache_use) {
  emulator::fetch_box(to, map, 0, row, tile, arrived.state);
}
inline void send_tile(const void* from, const CUtensorMap& map, std::uint32_t column, std::uint32_t row,
                      std::uint32_t part, bool adds) {
  emulator::send_box(from, map, column, row, part, adds);
}
inline void end_of_sending() { emulator::sent_groups::of_this_thread().end_group(); }
template <int left>
void wait_until_sent(const std::source_location& where = std::source_location::current()) {
  emulator::sent_groups::of_this_thread().wait(left, where);
}
inline void wait_until_written(const std::source_location& where = std::source_location::current()) {
  emulator::sent_groups::of_this_thread().wait(0, where);
}

#endif

}  // namespace skein::kernels::gpu
