#pragma once
#include "kernels/gpu/time_mix/chunks/chunk_plan.hpp"
#include "kernels/gpu/time_mix/wkv6.hpp"

namespace skein::kernels::gpu {

/// wkv6 for the chunked rows of runs, 64 tokens at a time on tensor cores (wkv6_chunks.cu explains the algorithm). wkv6
/// processes the remaining rows afterwards. As with chunked_time_mix, runs may be cut between chunks, and y and states
/// differ from wkv6 by about 2^-11 of their size (measured in tests/kernels/gpu/gpu_wkv6_test.cpp). For heads of 64.
class chunked_wkv6 : public chunk_plan {
 public:
  using chunk_plan::chunk_plan;
  /// Whether the current device supports it; also prepares the kernels.
  [[nodiscard]] static bool available();
  /// Runs one layer.
  [[nodiscard]] result<void> run(stream_handle in, element state_type, const wkv6_parameters& of) const;
};

}  // namespace skein::kernels::gpu
