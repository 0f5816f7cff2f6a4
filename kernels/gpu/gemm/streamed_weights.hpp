#pragma once
#include <algorithm>
#include <functional>

#include "kernels/gpu/gemm/matmul.hpp"
#include "kernels/gpu/types/coded_layout.hpp"
#include "kernels/gpu/types/device_profile.hpp"

namespace skein::kernels::gpu {

[[nodiscard]] constexpr std::size_t bytes_of(const device_matrix& m) {
  const std::uint32_t outputs = padded(m.outputs), inputs = padded(m.inputs);
  return m.format.quantised() ? coded_bytes(m.format, outputs, inputs) : std::size_t{outputs} * inputs * 2;
}

/// launch_shape::streamed of a launch of GEMMs, which reads its weights once if it has at most 64 rows. It is the range
/// from the first to the last matrix, also with small vectors between them; or only the largest matrix, cut to the
/// limit, if that range exceeds the limit or more than half of it are gaps. Empty with PDL, with which it was not
/// measured. Of matrices of 16 bits and with codes.
[[nodiscard]] inline std::span<const std::byte> streamed_weights(std::span<const gemm> launch, std::uint32_t rows,
                                                                 const device_profile& profile) {
  constexpr std::uint32_t rows_max = 64;
  const std::size_t most = profile.streamed_bytes_max;
  if (rows > rows_max || profile.has_pdl || most == 0) return {};
  const auto begin_of = [](const gemm& p) { return static_cast<const std::byte*>(p.matrix.data); };
  const auto end_of = [&](const gemm& p) { return begin_of(p) + bytes_of(p.matrix); };
  const std::byte *begin = begin_of(launch.front()), *end = end_of(launch.front());
  std::size_t weights = 0;
  for (const gemm& p : launch) {
    begin = std::min(begin, begin_of(p), std::less()), end = std::max(end, end_of(p), std::less());
    weights += bytes_of(p.matrix);
  }
  const auto range = static_cast<std::size_t>(end - begin);
  if (range <= most && range <= 2 * weights) return {begin, range};
  const gemm& largest = *std::ranges::max_element(launch, {}, [](const gemm& p) { return bytes_of(p.matrix); });
  return {begin_of(largest), std::min(most, bytes_of(largest.matrix))};
}

}  // namespace skein::kernels::gpu
