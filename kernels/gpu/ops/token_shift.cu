// A block processes one row, or several neighbours if there are many. It normalises its own rows and the row before
// them, although another block normalises that row as well: sharing it would take a second launch, and it comes from
// the L2 cache.
//
// x_prev is read by the block of a run's first row and must then become the last row, which may belong to another
// block. So that no block overwrites what another still reads, the block of the first row does both: it normalises the
// last row a second time. In decode, where a run is one row, it already has that row. Inside a run the row before is
// rounded as x_prev would be, so that the bits do not depend on where a run was cut.
//
// A block of one row is bound by latency. So it loads the data that the preceding kernels do not write (weights, the
// batch, x_prev) before those have ended. Counts and runs were complete when the embedding let the next kernel begin.
// Without PDL it cannot, and the weights of a row, up to eight times its size, take one SM longer than anything else.
// So a row is cut into slices, each for a block (slices_of): all of them normalise the whole row, because its sums are
// needed, and shift only the channels of their slice.
//
// Single rows of many sequences share the SMs in turn: if weights are loaded only when they are needed, twice as many
// blocks fit, and one works while another waits (7.2B, 320 rows, six outputs: 24 us to 22). Such ticks write more than
// the L2 cache holds, and lines that a row has read for the last time need not be written back: they are discarded.
//
// Many rows of few sequences are distributed evenly over the blocks that the SMs hold at once: weights, eight times the
// size of a row, are read once for all rows of a block, and the next row is loaded while one is processed.
//
// Floor, in bytes per row: width * (4 for x, 4 for every addend, 4 for its sum, and the outputs).
#include "kernels/gpu/ops/token_shift.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "kernels/gpu/device/discard.cuh"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/ops/shift_row.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr std::uint32_t many_rows = 512;
constexpr std::uint32_t rows_each_max = 64;

/// A thread's share of the mixes. A short kernel loads all of them before its rows arrive.
template <unsigned packets, unsigned shifts>
struct mix_shares {
  row_share<packets> of[shifts];

  mix_shares() = default;
  __device__ explicit mix_shares(const token_shift_parameters& from) {
#pragma unroll
    for (unsigned s = 0; s < shifts; ++s)
      if (s < from.shifts)
        for_each_packet<packets>(from.width,
                                 [&](unsigned i, std::uint32_t c) { load_floats(from.mix[s] + c, of[s].values[i]); });
  }
};

/// Block (t, i) shifts the channels of slice i of row t.
template <typename Element, typename Kept, unsigned packets, unsigned shifts>
__global__ void __launch_bounds__(512) token_shift_kernel(device_batch rows, token_shift_parameters of) {
  pdl_launch_dependents();
  const bool is_of_slice = threadIdx.x / (blockDim.x / gridDim.y) == blockIdx.y;
  norm_share<packets> norm{};
  mix_shares<packets, shifts> mixes;
  if (is_of_slice) norm = norm_share<packets>(of.norm, of.width), mixes = mix_shares<packets, shifts>(of);
  const std::uint32_t t = blockIdx.x;
  if (t >= rows.counts->rows) return pdl_wait();
  const sequence_run run = rows.runs[rows.run_of_row[t]];
  const bool begins = t == run.first_row;
  x_prev_on_its_way<Kept, packets> x_prev;
  if (begins && is_of_slice) x_prev.ask(of, run);
  pdl_wait();
  row_share<packets> now, before;  // before: the row to shift with
  if (!begins) before = as_kept<Kept>(load_normed(of, norm, t - 1));
  now = load_row<packets>(of.from, of.width, t);
  if (of.sum && is_of_slice) store_sum(of, t, now);
  normalise(now, of.width, norm, layer_norm_eps);
  if (is_of_slice) {
    if (begins) before = x_prev.read(of.width);
    if (begins && run.rows == 1) store_x_prev<Kept>(of, run, now);
#pragma unroll
    for (unsigned s = 0; s < shifts; ++s)
      if (s < of.shifts) store_shifted<Element>(of, s, t, now, before, mixes.of[s]);
  }
  if (!begins || run.rows == 1) return;
  const row_share<packets> last = load_normed(of, norm, run.first_row + run.rows - 1);
  if (is_of_slice) store_x_prev<Kept>(of, run, last);
}

/// Discards row t of all inputs that no other block of the launch reads.
template <unsigned packets>
__device__ void discard_row(const token_shift_parameters& of, std::uint32_t t) {
  const gemm_rows& added = of.from.added;
  for_each_packet<packets>(of.width, [&](unsigned, std::uint32_t c) {
    if (c % (line_bytes / sizeof(float)) != 0) return;
    discard_line(of.from.x + static_cast<std::size_t>(t) * of.width + c);
    for (std::uint32_t p = 0; p < added.parts; ++p)
      discard_line(static_cast<const float*>(added.data) + p * added.part_stride +
                   static_cast<std::size_t>(t) * added.stride + c);
  });
  for (std::size_t at = threadIdx.x * line_bytes; at < of.spent_bytes; at += blockDim.x * line_bytes)
    discard_line(static_cast<const char*>(of.spent) + t * of.spent_bytes + at);
}

/// The same for runs of one row each, with registers for twice as many blocks at once: while a row waits for its loads,
/// others are processed.
template <typename Element, typename Kept, unsigned shifts>
__global__ void __launch_bounds__(512, 2) single_rows_kernel(device_batch rows, token_shift_parameters of) {
  constexpr unsigned packets = 2;
  pdl_launch_dependents();
  const std::uint32_t t = blockIdx.x;
  if (t >= rows.counts->rows) return pdl_wait();
  const sequence_run run = rows.runs[t];
  x_prev_on_its_way<Kept, packets> x_prev;
  x_prev.ask(of, run);
  pdl_wait();
  row_share<packets> now = load_row<packets>(of.from, of.width, t);
  if (of.sum) store_sum(of, t, now);
  normalise(now, of.width, norm_share<packets>(of.norm, of.width), layer_norm_eps);
  const row_share<packets> before = x_prev.read(of.width);
  store_x_prev<Kept>(of, run, now);
  if (of.discards) discard_row<packets>(of, t);  // after the barriers of the norm
#pragma unroll 1
  for (unsigned s = 0; s < shifts; ++s) {
    row_share<packets> mix;
    for_each_packet<packets>(of.width, [&](unsigned i, std::uint32_t c) { load_floats(of.mix[s] + c, mix.values[i]); });
    store_shifted<Element>(of, s, t, now, before, mix);
  }
}

/// The same for rows_each neighbours, two at a time. `adds`: there are partial sums to add to x.
template <typename Element, typename Kept, unsigned shifts, bool adds>
__global__ void __launch_bounds__(512)
    neighbours_kernel(device_batch rows, token_shift_parameters of, std::uint32_t rows_each) {
  constexpr unsigned packets = 2;
  using share = row_share<packets>;
  alignas(sequence_run) __shared__ unsigned char run_bytes[rows_each_max * sizeof(sequence_run)];
  auto* runs = reinterpret_cast<sequence_run*>(run_bytes);  // HIP: no member initializers in shared variables
  pdl_launch_dependents();
  const norm_share<packets> norm(of.norm, of.width);
  share mixes[shifts];
#pragma unroll
  for (unsigned s = 0; s < shifts; ++s)
    for_each_packet<packets>(of.width,
                             [&](unsigned i, std::uint32_t c) { load_floats(of.mix[s] + c, mixes[s].values[i]); });
  const std::uint32_t first = blockIdx.x * rows_each, count = rows.counts->rows;
  const std::uint32_t end = first + rows_each < count ? first + rows_each : count;
  if (first >= end) return pdl_wait();
  if (threadIdx.x < end - first) runs[threadIdx.x] = rows.runs[rows.run_of_row[first + threadIdx.x]];
  pdl_wait();
  __syncthreads();

  const auto normed_row = [&](std::uint32_t t) {
    share row = load_x<packets>(of.from, of.width, t);
    if (adds) add_to_row(row, of.from, of.width, t);
    normalise(row, of.width, norm, layer_norm_eps);
    return row;
  };
  constexpr unsigned at_once =
      shifts == 1 && !adds ? 4 : 2;  // rows that share the barriers of a norm, and are loaded together
  share next[at_once], before{};
  const auto load_next = [&](std::uint32_t t) {
#pragma unroll
    for (unsigned i = 0; i < at_once; ++i) next[i] = load_x<packets>(of.from, of.width, t + i < end ? t + i : end - 1);
  };
  load_next(first);
  sequence_run begun{};  // the last run that begins here
  if (runs[0].first_row != first) before = as_kept<Kept>(normed_row(first - 1));
  for (std::uint32_t t = first; t < end; t += at_once) {
    share now[at_once];
#pragma unroll
    for (unsigned i = 0; i < at_once; ++i) {
      now[i] = next[i];
      if (!adds || t + i >= end) continue;
      add_to_row(now[i], of.from, of.width, t + i);
      store_sum(of, t + i, now[i]);
    }
    if (t + at_once < end) load_next(t + at_once);
    normalise_together(now, of.width, norm, layer_norm_eps);
#pragma unroll
    for (unsigned i = 0; i < at_once; ++i) {
      if (t + i >= end) break;
      const sequence_run run = runs[t + i - first];
      if (run.first_row == t + i) {
        begun = run;
        x_prev_on_its_way<Kept, packets> x_prev;
        x_prev.ask(of, run);
        before = x_prev.read(of.width);
      }
#pragma unroll
      for (unsigned s = 0; s < shifts; ++s) store_shifted<Element>(of, s, t + i, now[i], before, mixes[s]);
      if (begun.rows > 0 && t + i == begun.first_row + begun.rows - 1) store_x_prev<Kept>(of, begun, now[i]);
      before = as_kept<Kept>(now[i]);
    }
  }
  if (begun.first_row + begun.rows <= end) return;
  store_x_prev<Kept>(of, begun, normed_row(begun.first_row + begun.rows - 1));
}

/// The blocks of a row for token_shift_kernel: together at most one for every other SM, of two warps or more. With PDL,
/// which hides the loads of weights, more than one is not faster (decision 112).
std::uint32_t slices_of(std::uint32_t rows, std::uint32_t threads, const device_profile& profile) {
  std::uint32_t slices = 1;
  while (!profile.has_pdl && slices < 4 && 4 * slices * rows <= profile.sm_count && threads % (2 * slices * 64) == 0)
    slices *= 2;
  return slices;
}

bool has_whole_lines(const token_shift_parameters& of) {
  const auto is_whole = [](auto... bytes) { return ((bytes % line_bytes == 0) && ...); };
  const auto at = [](const void* address) { return reinterpret_cast<std::uintptr_t>(address); };
  const gemm_rows& added = of.from.added;
  return is_whole(at(of.from.x), at(added.data), at(of.spent), of.width * sizeof(float), added.stride * sizeof(float),
                  added.part_stride * sizeof(float), of.spent_bytes);
}

}  // namespace

result<void> token_shift(stream_handle in, const device_batch& rows, element type, const token_shift_parameters& of) {
  check(of.shifts <= token_shifts_max);
  check(of.width <= width_max && of.width % 64 == 0);
  check(of.sum != of.from.x);
  check((of.sum != nullptr) == (of.from.added.parts > 0));
  check(of.kept_type != element::bf16);
  check(!of.discards || has_whole_lines(of));
  const auto profile = current_profile();
  if (!profile) return profile.error();
  const std::uint32_t block = row_threads(of.width), at_once = profile->sm_count * (512 / block);
  const auto shape_of = [&](std::uint32_t rows_each) {
    return launch_shape{"token_shift", {(rows.room.rows + rows_each - 1) / rows_each}, {block}, 0, in, true};
  };
  const auto start_any = [&](auto kernel) {
    launch_shape shape = shape_of(1);
    shape.grid.y = slices_of(rows.room.rows, block, *profile);
    return launch(shape, kernel, rows, of);
  };
  const auto start_usual = [&]<typename Element, typename Kept, unsigned shifts>() {
    if (rows.room.runs == rows.room.rows && rows.room.rows > at_once)
      return launch(shape_of(1), single_rows_kernel<Element, Kept, shifts>, rows, of);
    if (rows.room.rows < many_rows) return start_any(token_shift_kernel<Element, Kept, 2, shifts>);
    const std::uint32_t each = std::min((rows.room.rows + at_once - 1) / at_once, std::min(block, rows_each_max));
    return of.sum ? launch(shape_of(each), neighbours_kernel<Element, Kept, shifts, true>, rows, of, each)
                  : launch(shape_of(each), neighbours_kernel<Element, Kept, shifts, false>, rows, of, each);
  };
  const auto start = [&]<typename Element, typename Kept>() {
    if (packets_of(of.width) != 2) return start_any(token_shift_kernel<Element, Kept, 3, token_shifts_max>);
    if constexpr (sizeof(Element) == 2) {  // fp32 is for comparisons: one kernel will do
      if (of.shifts == 1) return start_usual.template operator()<Element, Kept, 1>();
      if (of.shifts == token_shifts_max) return start_usual.template operator()<Element, Kept, token_shifts_max>();
    }
    return start_any(token_shift_kernel<Element, Kept, 2, token_shifts_max>);
  };
  return with_element(type, [&]<typename Element>() {
    return of.kept_type == element::f32 ? start.template operator()<Element, float>()
                                        : start.template operator()<Element, half>();
  });
}

}  // namespace skein::kernels::gpu
