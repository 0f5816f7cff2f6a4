#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/aligned_buffer.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace skein::kernels::cpu {

/// What this machine can do at most right now, by measurement: the scale for the figures of a benchmark. On a shared
/// machine the limits themselves move from second to second, so a benchmark probes them beside every sample and
/// compares neighbours in time.
class machine_probe {
 public:
  /// `threads` as in thread_pool. Takes 512 MiB, more than any cache holds.
  explicit machine_probe(std::uint32_t threads);

  [[nodiscard]] std::uint32_t threads() const { return pool_.threads(); }
  /// Bytes per second of one pass that streams `bytes` from memory with all threads.
  [[nodiscard]] double read_bytes_per_s(std::size_t bytes);
  /// fp32 operations per second of one pass of fused multiply-adds from registers (two operations each) with all
  /// threads; a pass takes a few milliseconds.
  [[nodiscard]] double fma_flop_per_s();

 private:
  thread_pool pool_;
  aligned_buffer<float> memory_;
  std::size_t next_piece_ = 0;  // passes go on where the one before ended
};

}  // namespace skein::kernels::cpu
