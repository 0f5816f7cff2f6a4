#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace skein::kernels::gpu {

struct device_properties {
  std::string name;  ///< the vendor's name for the device
  std::size_t memory_bytes = 0, free_bytes = 0;
  std::uint32_t sm_count = 0, warp_width = 0;
  bool has_bf16 = true;  ///< false: Turing, whose tensor cores know fp16 only
};

}  // namespace skein::kernels::gpu
