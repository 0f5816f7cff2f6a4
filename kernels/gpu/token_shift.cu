// A block is one row. It normalises its own row and the one before, although another block normalises that as well: to
// share them would take a second launch or a buffer, and x comes from the L2 cache.
//
// x_prev is read by the block of a run's first row and must then become the last row, which is another block's. So that
// no block overwrites what another still reads, the block of the first row does both: it normalises the last row a
// second time. In decode, where a run is one row, that row is at hand.
#include "kernels/gpu/token_shift.hpp"

#include "base/check.hpp"
#include "kernels/gpu/device/layer_norm.cuh"
#include "kernels/gpu/device/vec.cuh"
#include "kernels/ops.hpp"

namespace skein::kernels::gpu {

namespace {

/// row = layer_norm(x[t]); every thread its own channels.
__device__ void load_normed(float* row, const token_shift_parameters& of, std::uint32_t t) {
  for (std::uint32_t c = threadIdx.x; c < of.width; c += blockDim.x)
    row[c] = of.x[static_cast<std::size_t>(t) * of.width + c];
  layer_norm(row, of.width, of.norm.weight, of.norm.bias, layer_norm_eps);
}

template <typename Element>
__global__ void token_shift_kernel(device_batch rows, token_shift_parameters of) {
  const std::uint32_t t = blockIdx.x;
  if (t >= rows.counts->rows) return;
  const sequence_run run = rows.runs[rows.run_of_row[t]];
  const bool first = t == run.first_row;
  float* const x_prev = reinterpret_cast<float*>(reinterpret_cast<char*>(of.x_prev) + run.slot * of.slot_bytes);
  float* const now = dynamic_shared<float>();
  float* const before = now + of.width;

  load_normed(now, of, t);
  if (first)
    for (std::uint32_t c = threadIdx.x; c < of.width; c += blockDim.x) before[c] = x_prev[c];
  else
    load_normed(before, of, t - 1);

  for (std::uint32_t i = 0; i < of.shifts; ++i) {
    Element* const out = static_cast<Element*>(of.out[i]) + static_cast<std::size_t>(t) * of.out_stride;
    for (std::uint32_t c = threadIdx.x; c < of.width; c += blockDim.x)
      out[c] = from_float<Element>(multiply_add(before[c] - now[c], of.mix[i][c], now[c]));
  }

  if (!first) return;
  if (run.rows > 1) load_normed(now, of, run.first_row + run.rows - 1);
  for (std::uint32_t c = threadIdx.x; c < of.width; c += blockDim.x) x_prev[c] = now[c];
}

}  // namespace

result<void> token_shift(stream_handle in, const device_batch& rows, element type, const token_shift_parameters& of) {
  check(of.shifts <= token_shifts_max);
  return with_element(type, [&]<typename Element>() {
    return launch({"token_shift", {rows.room.rows}, {layer_norm_threads(of.width)}, 2 * of.width * sizeof(float), in},
                  token_shift_kernel<Element>, rows, of);
  });
}

}  // namespace skein::kernels::gpu
