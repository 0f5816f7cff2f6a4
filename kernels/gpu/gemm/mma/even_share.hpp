#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/gpu/types/device_profile.hpp"

/// The shared memory that the blocks of a launch of few rows request, so that an SM has space for as many as it should.
namespace skein::kernels::gpu::mma {

/// In each block, by the driver; not on Turing, where this is an approximation.
inline constexpr std::size_t reserved_shared_bytes = 1024;
/// Blocks get multiples of this.
inline constexpr std::size_t shared_bytes_unit = 128;

/// The blocks of a launch that each SM gets, at once if that is possible: registers suffice for fewer than 8.
[[nodiscard]] inline std::uint32_t blocks_of_sm(std::uint32_t blocks, const device_profile& profile) {
  return std::min((blocks + profile.sm_count - 1) / profile.sm_count, 8u);
}

/// The dynamic shared memory of a block of which an SM of the device has space for just `each`.
[[nodiscard]] inline std::size_t even_share(std::uint32_t each, const device_profile& profile) {
  return ((profile.shared_bytes_of_device + reserved_shared_bytes) / each - reserved_shared_bytes) / shared_bytes_unit *
         shared_bytes_unit;
}

/// The dynamic shared memory of blocks that need `bytes`. With PDL, an SM has space for its even share of a launch of
/// few rows, at least two blocks, and no more. Otherwise an SM that is free a little earlier than others would get more
/// blocks of the next launch, then fewer, and so in all later launches, and the weights that these request would delay
/// the inputs of the kernel before. Under an imposed profile, an SM has space for as many as one of that card.
[[nodiscard]] inline std::size_t share_of_sm(std::size_t bytes, std::uint32_t blocks, bool few_rows,
                                             const device_profile& profile) {
  const bool is_limited = profile.has_pdl && few_rows;
  if (!is_limited && profile.shared_bytes_per_block == profile.shared_bytes_of_device) return bytes;
  const std::size_t of_sm = profile.shared_bytes_per_block + reserved_shared_bytes;
  auto each = static_cast<std::uint32_t>(of_sm / (bytes + reserved_shared_bytes));
  if (is_limited) each = std::min(each, std::max(blocks_of_sm(blocks, profile), 2u));
  return std::max(bytes, even_share(std::max(each, 1u), profile));
}

}  // namespace skein::kernels::gpu::mma
