#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/gpu/types/gpu_tuning.hpp"

namespace skein::kernels::gpu {

/// What decides which kernels a device runs and how they are cut. Tests and benchmarks can impose the profile of
/// another card: then kernels use no more than both have.
struct device_profile {
  std::uint32_t compute_capability = 0;  ///< 10 * major + minor, of NVIDIA GPUs; 0: another GPU
  std::uint32_t sm_count = 1;
  std::uint32_t shared_bytes_per_block = 48 << 10;  ///< the most that a kernel may request
  std::uint32_t shared_bytes_of_device = 48 << 10;  ///< the same of the device itself, if this profile is imposed on it
  bool has_wgmma = false, has_pdl = false;
  std::size_t streamed_bytes_max = 0;  ///< of launch_shape::streamed; 0: the device has no such windows
  tile_times tile_us = {};             ///< if they were measured

  /// mma.sync and ldmatrix for fp16.
  [[nodiscard]] constexpr bool has_tensor_cores() const { return compute_capability >= 75; }
  /// The same for bf16, and cp.async.
  [[nodiscard]] constexpr bool has_bf16() const { return compute_capability >= 80; }
};

/// With what a compute capability implies: wgmma exists on 9.0 alone, PDL from there on. Without streamed_bytes_max.
[[nodiscard]] constexpr device_profile make_profile(std::uint32_t compute_capability, std::uint32_t sm_count,
                                                    std::uint32_t shared_bytes_per_block) {
  return {.compute_capability = compute_capability,
          .sm_count = sm_count,
          .shared_bytes_per_block = shared_bytes_per_block,
          .shared_bytes_of_device = shared_bytes_per_block,
          .has_wgmma = compute_capability == 90,
          .has_pdl = compute_capability >= 90};
}

/// The profile of a common card: t4, a100, rtx3090, rtx4090, l4, h100 or rtx5090. "a100:132" has another number of SMs.
[[nodiscard]] std::optional<device_profile> find_profile(std::string_view name);
/// Their names, for messages.
[[nodiscard]] std::string profile_names();
/// What a device of profile `own` may use if `imposed` is imposed on it.
[[nodiscard]] device_profile limit_profile(const device_profile& own, const device_profile& imposed);

}  // namespace skein::kernels::gpu
