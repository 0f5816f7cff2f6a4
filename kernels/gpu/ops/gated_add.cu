// A thread computes four channels of one row.
//
// Floor, in bytes per row: width * (8 for x, 4 for every addend, and the gate).
#include "kernels/gpu/ops/gated_add.hpp"

#include "base/check.hpp"
#include "kernels/gpu/device/gemm_rows.cuh"
#include "kernels/gpu/device/pdl.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned gated_add_threads = 256;

__global__ void __launch_bounds__(gated_add_threads)
    gated_add_kernel(device_batch rows, const float* gate, std::uint32_t gate_stride, gemm_rows value, float* x,
                     std::uint32_t width) {
  pdl_launch_dependents();
  pdl_wait();
  const std::uint32_t t = blockIdx.x, channel = (blockIdx.y * gated_add_threads + threadIdx.x) * 4;
  if (t >= rows.counts->rows || channel >= width) return;
  const on_their_way<float, 4> share(gate + static_cast<std::size_t>(t) * gate_stride + channel);
  const gemms_on_their_way<float, 4> addends(value, t, channel);
  float* const at = x + static_cast<std::size_t>(t) * width + channel;
  float sums[4], of_gate[4], of_value[4];
  load_floats(at, sums);
  share.read(of_gate), addends.read(of_value);
  for (unsigned e = 0; e < 4; ++e) sums[e] = multiply_add(of_gate[e], of_value[e], sums[e]);
  store_floats(at, sums);
}

}  // namespace

result<void> gated_add(stream_handle in, const device_batch& rows, const float* gate, std::uint32_t gate_stride,
                       const gemm_rows& value, float* x, std::uint32_t width) {
  check(width % 64 == 0 && gate_stride % 4 == 0);
  const std::uint32_t blocks = (width / 4 + gated_add_threads - 1) / gated_add_threads;
  const launch_shape shape{"gated_add", {rows.room.rows, blocks}, {gated_add_threads}, 0, in, true};
  return launch(shape, gated_add_kernel, rows, gate, gate_stride, value, x, width);
}

}  // namespace skein::kernels::gpu
