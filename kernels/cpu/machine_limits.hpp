#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/aligned_buffer.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace skein::kernels::cpu {

/// Measures the current peak bandwidth and arithmetic rate of this machine, to which benchmarks relate their results.
/// On a shared machine the peaks change from second to second, so a benchmark probes them next to every sample.
class machine_probe {
 public:
  /// `threads` as in thread_pool. Allocates 512 MiB, more than any cache.
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
  std::size_t next_piece_ = 0;  // each pass continues where the previous one ended
};

}  // namespace skein::kernels::cpu
