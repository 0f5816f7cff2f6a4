// A block takes one row, or two neighbours when there are many. It normalises its own rows and the one before,
// although another block normalises that as well: to share it would take a second launch, and it comes from the L2
// cache.
//
// x_prev is read by the block of a run's first row and must then become the last row, which may be another block's. So
// that no block overwrites what another still reads, the block of the first row does both: it normalises the last row a
// second time. In decode, where a run is one row, that row is at hand.
//
// A block that takes one row has little but latencies. So it loads what the kernel before does not write (weights, the
// batch, x_prev, and x where the sums of that kernel are yet to be added) before that kernel has ended. It may: that is
// a product, which lets this kernel begin when all before it is over, or the embedding, which does so when the batch is
// there.
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

__device__ float* x_prev_of(const token_shift_parameters& of, const sequence_run& run) {
  return reinterpret_cast<float*>(reinterpret_cast<char*>(of.x_prev) + run.slot * of.slot_bytes);
}

__device__ void bring_weights_closer(const token_shift_parameters& of) {
  for_each_packet(of.width, [&](unsigned, std::uint32_t c) {
    bring_closer(of.norm.weight + c);
    bring_closer(of.norm.bias + c);
    for (std::uint32_t s = 0; s < of.shifts; ++s) bring_closer(of.mix[s] + c);
  });
}

template <typename Element, unsigned rows_each>
__global__ void __launch_bounds__(512) token_shift_kernel(device_batch rows, token_shift_parameters of) {
  let_next_kernel_begin();
  bring_weights_closer(of);
  const std::uint32_t first = blockIdx.x * rows_each, count = rows.counts->rows;
  const std::uint32_t end = first + rows_each < count ? first + rows_each : count;
  if (first >= end) return wait_for_kernels_before();
  row_share now[rows_each], before[rows_each];  // before: what each row is shifted with
  sequence_run runs[rows_each], begun{};        // begun: the last run that begins here
#pragma unroll
  for (unsigned r = 0; r < rows_each; ++r) {
    const std::uint32_t t = first + r;
    if (t >= end) break;
    runs[r] = rows.runs[rows.run_of_row[t]];
    if (t == runs[r].first_row)
      for_each_packet(
          of.width, [&](unsigned i, std::uint32_t c) { load_floats(x_prev_of(of, runs[r]) + c, before[r].values[i]); });
    if (of.sum) now[r] = load_x(of.from, of.width, t);
  }
  wait_for_kernels_before();
#pragma unroll
  for (unsigned r = 0; r < rows_each; ++r) {
    const std::uint32_t t = first + r;
    if (t >= end) break;
    if (t == runs[r].first_row)
      begun = runs[r];
    else
      before[r] = r > 0 ? now[r - 1] : load_normed(of, t - 1);
    if (of.sum) {
      add_to_row(now[r], of.from, of.width, t);
      for_each_packet(of.width, [&](unsigned i, std::uint32_t c) {
        store_floats(of.sum + static_cast<std::size_t>(t) * of.width + c, now[r].values[i]);
      });
    } else {
      now[r] = load_x(of.from, of.width, t);
    }
    normalise(now[r], of.width, of.norm, layer_norm_eps);
    if (begun.rows > 0 && t == begun.first_row + begun.rows - 1)
      for_each_packet(of.width,
                      [&](unsigned i, std::uint32_t c) { store_floats(x_prev_of(of, begun) + c, now[r].values[i]); });
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
  for_each_packet(of.width,
                  [&](unsigned i, std::uint32_t c) { store_floats(x_prev_of(of, begun) + c, last.values[i]); });
}

}  // namespace

result<void> token_shift(stream_handle in, const device_batch& rows, element type, const token_shift_parameters& of) {
  check(of.shifts <= token_shifts_max);
  check(of.width <= width_max && of.width % 64 == 0);
  check(of.sum != of.from.x);
  check((of.sum != nullptr) == (of.from.added.parts > 0));
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
