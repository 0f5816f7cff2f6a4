#pragma once
#include "kernels/gpu/time_mix/chunks/chunk_plan.hpp"

namespace skein::kernels::gpu {

/// time_mix for the chunked rows of runs, 64 tokens at a time on tensor cores (wkv_chunks.cu explains the algorithm).
/// time_mix processes the remaining rows afterwards. After every chunk the state is stored, or passed on exactly as it
/// would be stored, so runs may be cut between chunks. Operands have 11 bits and sums 24, so y and states differ from
/// time_mix by about 2^-11 of their size (measured in tests/kernels/gpu/gpu_time_mix_test.cpp).
class chunked_time_mix : public chunk_plan {
 public:
  using chunk_plan::chunk_plan;
  /// Whether the current device supports it; also prepares the kernels.
  [[nodiscard]] static bool available();
  /// Runs one layer.
  [[nodiscard]] result<void> run(stream_handle in, element state_type, const time_mix_parameters& of) const;
};

}  // namespace skein::kernels::gpu
