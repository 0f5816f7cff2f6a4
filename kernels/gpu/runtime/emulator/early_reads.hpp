#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

/// Programmatic dependent launch (device/pdl.cuh) in the emulator, which runs one kernel after another. While an
/// early_reads exists, a kernel of this host thread fails if one of its asynchronous copies reads, before the thread's
/// wait, memory that a kernel has changed that could still be running on a card. Plain loads are not seen.
namespace skein::kernels::gpu::emulator {

class early_reads {
 public:
  early_reads();
  ~early_reads();
  early_reads(const early_reads&) = delete;  // it marks a scope
  early_reads& operator=(const early_reads&) = delete;
  /// Of this host thread, or null.
  [[nodiscard]] static early_reads* current() { return of_this_thread_; }

  /// `overlaps`: launched with PDL, so it may start when all blocks of the kernel before have called
  /// pdl_launch_dependents or have ended.
  void begin_kernel(bool overlaps, std::size_t blocks);
  void end_kernel();
  /// After another operation of a stream, which waits for all kernels before.
  void forget() { may_run_.clear(); }

  // By the running thread of a kernel:
  void wait();
  void wait_for_count();  ///< of a counter that says that inputs are complete; for all threads of the block
  void start_next();
  void check(const std::byte* from, std::size_t bytes) const;

 private:
  using contents = std::map<const std::byte*, std::vector<std::byte>>;  ///< of device memory, by where it begins

  static inline constinit thread_local early_reads* of_this_thread_ = nullptr;

  [[nodiscard]] bool has_waited() const;

  std::deque<contents> may_run_;       ///< before each kernel that may run when the next one starts, in their order
  contents before_;                    ///< before the kernel that runs
  std::vector<std::uint64_t> waited_;  ///< by thread: the last block, counted from 1, in which it has waited
  std::uint64_t counted_ = 0;          ///< the last block in which a thread has waited for a count
  std::vector<bool> started_next_;     ///< by block of the kernel
  std::size_t early_starts_ = 0;       ///< blocks that let the next kernel start before they waited
  std::size_t blocks_ = 0;
  bool last_was_early_ = false;
};

/// For emuMalloc and emuFree.
void remember_memory(const void* memory, std::size_t bytes);
void forget_memory(const void* memory);

}  // namespace skein::kernels::gpu::emulator
