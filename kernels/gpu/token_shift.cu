// A block takes one row, or two neighbours when there are many. It normalises its own rows and the one before,
// although another block normalises that as well: to share it would take a second launch, and it comes from the L2
// cache.
//
// x_prev is read by the block of a run's first row and must then become the last row, which may be another block's. So
// that no block overwrites what another still reads, the block of the first row does both: it normalises the last row a
// second time. In decode, where a run is one row, that row is at hand.
//
// Floor, in bytes a row: width * (4 for x, 4 for every addend, 4 for its sum, and the outputs).
#include "kernels/gpu/token_shift.hpp"

#include "base/check.hpp"
#include "kernels/gpu/device/overlap.cuh"
#include "kernels/gpu/device/row_norm.cuh"
#include "kernels/ops.hpp"

namespace skein::kernels::gpu {

namespace {

constexpr std::uint32_t many_rows = 512;

/// layer_norm(x[t] + what is added)
__device__ row_share load_normed(const token_shift_parameters& of, std::uint32_t t) {
  row_share row = load_row(of.from, of.width, t);
  normalise(row, of.width, of.norm, layer_norm_eps);
  return row;
}

template <typename Element, unsigned rows_each>
__global__ void __launch_bounds__(512) token_shift_kernel(device_batch rows, token_shift_parameters of) {
  let_next_kernel_begin();
  wait_for_kernels_before();
  const std::uint32_t first = blockIdx.x * rows_each, end = min(first + rows_each, rows.counts->rows);
  if (first >= end) return;
  row_share now[rows_each], before[rows_each];  // before: what each row is shifted with
  sequence_run begun{};                         // the last run that begins here
#pragma unroll
  for (unsigned r = 0; r < rows_each; ++r) {
    const std::uint32_t t = first + r;
    if (t >= end) break;
    const sequence_run run = rows.runs[rows.run_of_row[t]];
    float* const x_prev = reinterpret_cast<float*>(reinterpret_cast<char*>(of.x_prev) + run.slot * of.slot_bytes);
    if (t == run.first_row) {
      begun = run;
      for_each_packet(of.width, [&](unsigned i, std::uint32_t c) { load_floats(x_prev + c, before[r].values[i]); });
    } else {
      before[r] = r > 0 ? now[r - 1] : load_normed(of, t - 1);
    }
    now[r] = load_row(of.from, of.width, t);
    if (of.sum)
      for_each_packet(of.width, [&](unsigned i, std::uint32_t c) {
        store_floats(of.sum + static_cast<std::size_t>(t) * of.width + c, now[r].values[i]);
      });
    normalise(now[r], of.width, of.norm, layer_norm_eps);
    if (begun.rows > 0 && t == begun.first_row + begun.rows - 1)
      for_each_packet(of.width, [&](unsigned i, std::uint32_t c) { store_floats(x_prev + c, now[r].values[i]); });
  }

  for (std::uint32_t s = 0; s < of.shifts; ++s)
    for_each_packet(of.width, [&](unsigned i, std::uint32_t c) {
      float mix[4];
      load_floats(of.mix[s] + c, mix);
#pragma unroll
      for (unsigned r = 0; r < rows_each; ++r) {
        if (first + r >= end) break;
        float out[4];
        for (unsigned e = 0; e < 4; ++e)
          out[e] = multiply_add(before[r].values[i][e] - now[r].values[i][e], mix[e], now[r].values[i][e]);
        store_floats(static_cast<Element*>(of.out[s]) + static_cast<std::size_t>(first + r) * of.out_stride + c, out);
      }
    });

  if (begun.first_row + begun.rows <= end) return;
  const row_share last = load_normed(of, begun.first_row + begun.rows - 1);
  float* const x_prev = reinterpret_cast<float*>(reinterpret_cast<char*>(of.x_prev) + begun.slot * of.slot_bytes);
  for_each_packet(of.width, [&](unsigned i, std::uint32_t c) { store_floats(x_prev + c, last.values[i]); });
}

}  // namespace

result<void> token_shift(stream_handle in, const device_batch& rows, element type, const token_shift_parameters& of) {
  check(of.shifts <= token_shifts_max);
  check(of.width <= width_max && of.width % 64 == 0);
  check(of.sum != of.from.x);
  const auto launch_blocks = [&](auto kernel, std::uint32_t rows_each) {
    return launch({"token_shift", {(rows.room.rows + rows_each - 1) / rows_each}, {row_threads(of.width)}, 0, in, true},
                  kernel, rows, of);
  };
  return with_element(type, [&]<typename Element>() {
    return rows.room.rows < many_rows ? launch_blocks(token_shift_kernel<Element, 1>, 1)
                                      : launch_blocks(token_shift_kernel<Element, 2>, 2);
  });
}

}  // namespace skein::kernels::gpu
