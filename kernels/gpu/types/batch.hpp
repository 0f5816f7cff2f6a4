#pragma once
#include <cstdint>

#include "base/ids.hpp"
#include "kernels/stages.hpp"

namespace skein::kernels::gpu {

struct batch_counts {
  std::uint32_t rows = 0, runs = 0, wanted = 0;
};

/// The rows of one tick as kernels read them. All arrays are in device memory at addresses that never change, so a
/// captured CUDA graph serves every later tick. `room` is the number of rows, runs and wanted rows that launches have
/// blocks for and is fixed at capture; blocks beyond `counts` do nothing.
struct device_batch {
  const batch_counts* counts = nullptr;
  const token_id* tokens = nullptr;            ///< [rows]
  const sequence_run* runs = nullptr;          ///< [runs], no slot twice
  const std::uint32_t* run_of_row = nullptr;   ///< [rows]
  const std::uint32_t* wanted_rows = nullptr;  ///< [wanted] rows whose logits are read
  batch_counts room;
};

}  // namespace skein::kernels::gpu
