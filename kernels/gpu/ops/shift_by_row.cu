// A block processes one row, as in token_shift.cu, which explains how x_prev is read and replaced. Both kernels
// normalise the row and the one before it: storing the results of the first one for the second one would take more
// bytes than x itself.
//
// Floor, in bytes per row: width * (4 for x, twice, and shares and outputs).
#include "kernels/gpu/ops/shift_by_row.hpp"

#include <type_traits>

#include "base/check.hpp"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/ops/shift_row.cuh"

namespace skein::kernels::gpu {

namespace {

template <typename Element>
using share_type = std::conditional_t<std::is_same_v<Element, float>, float, half>;

struct row_shares {
  const void* of[shifts_by_row_max];
};

/// This thread's share of a row's shares, whose loads are issued at construction.
template <typename Share, unsigned packets>
class shares_on_their_way {
 public:
  __device__ shares_on_their_way(const row_shares& shares, const token_shift_parameters& of, std::uint32_t t) {
#pragma unroll
    for (unsigned s = 0; s < shifts_by_row_max; ++s)
      if (s < of.shifts)
        for_each_packet<packets>(of.width, [&](unsigned i, std::uint32_t c) {
          packets_[s][i] = on_their_way<Share, 4>(static_cast<const Share*>(shares.of[s]) +
                                                  static_cast<std::size_t>(t) * of.out_stride + c);
        });
  }
  /// mix + share
  __device__ row_share<packets> add_to(const float* mix, unsigned s, std::uint32_t width) const {
    row_share<packets> sum;
    for_each_packet<packets>(width, [&](unsigned i, std::uint32_t c) {
      float share[4];
      packets_[s][i].read(share);
      load_floats(mix + c, sum.values[i]);
      for (unsigned e = 0; e < 4; ++e) sum.values[i][e] += share[e];
    });
    return sum;
  }

 private:
  on_their_way<Share, 4> packets_[shifts_by_row_max][packets];
};

template <typename Element, typename Kept, unsigned packets, bool by_row>
__global__ void __launch_bounds__(512)
    shift_kernel(device_batch rows, token_shift_parameters of, [[maybe_unused]] row_shares shares,
                 [[maybe_unused]] row_statistics* statistics) {
  pdl_launch_dependents();
  const norm_share<packets> norm(of.norm, of.width);
  const std::uint32_t t = blockIdx.x;
  if (t >= rows.counts->rows) return pdl_wait();
  const sequence_run run = rows.runs[rows.run_of_row[t]];
  const bool begins = t == run.first_row;
  x_prev_on_its_way<Kept, packets> x_prev;
  if (begins) x_prev.ask(of, run);
  pdl_wait();
  row_share<packets> now, before;
  if (!begins) before = as_kept<Kept>(load_normed(of, norm, t - 1));
  now = load_row<packets>(of.from, of.width, t);
  if (of.sum) store_sum(of, t, now);
  [[maybe_unused]] const row_statistics taken = normalise(now, of.width, norm, layer_norm_eps);
  if (begins) before = x_prev.read(of.width);
  if constexpr (by_row) {
    const shares_on_their_way<share_type<Element>, packets> of_row(shares, of, t);
    if (begins && run.rows == 1) store_x_prev<Kept>(of, run, now);
#pragma unroll
    for (unsigned s = 0; s < shifts_by_row_max; ++s)
      if (s < of.shifts) store_shifted<Element>(of, s, t, now, before, of_row.add_to(of.mix[s], s, of.width));
    if (begins && run.rows > 1) store_x_prev<Kept>(of, run, load_normed(of, norm, run.first_row + run.rows - 1));
  } else {
    if (statistics && threadIdx.x == 0) statistics[t] = taken;
    row_share<packets> mix;
    for_each_packet<packets>(of.width, [&](unsigned i, std::uint32_t c) { load_floats(of.mix[0] + c, mix.values[i]); });
    store_shifted<Element>(of, 0, t, now, before, mix);
  }
}

template <bool by_row>
result<void> start(stream_handle in, const device_batch& rows, element type, const token_shift_parameters& of,
                   const row_shares& shares, row_statistics* statistics) {
  check(of.width <= width_max && of.width % 64 == 0);
  check(of.shifts >= 1 && of.shifts <= shifts_by_row_max);
  check(of.sum != of.from.x);
  check((of.sum != nullptr) == (of.from.added.parts > 0));
  check(of.kept_type != element::bf16);
  const launch_shape shape{
      by_row ? "shift_by_row" : "shift_for_shares", {rows.room.rows}, {row_threads(of.width)}, 0, in, true};
  const auto with_kept = [&]<typename Element, typename Kept>() {
    return packets_of(of.width) == 2
               ? launch(shape, shift_kernel<Element, Kept, 2, by_row>, rows, of, shares, statistics)
               : launch(shape, shift_kernel<Element, Kept, 3, by_row>, rows, of, shares, statistics);
  };
  return with_element(type, [&]<typename Element>() {
    return of.kept_type == element::f32 ? with_kept.template operator()<Element, float>()
                                        : with_kept.template operator()<Element, half>();
  });
}

}  // namespace

result<void> shift_for_shares(stream_handle in, const device_batch& rows, element type,
                              const token_shift_parameters& of, row_statistics* statistics) {
  return start<false>(in, rows, type, of, {}, statistics);
}

result<void> shift_by_row(stream_handle in, const device_batch& rows, element type, const token_shift_parameters& of,
                          const void* const (&share)[shifts_by_row_max]) {
  check(of.sum == nullptr);
  row_shares shares{};
  for (std::uint32_t i = 0; i < of.shifts; ++i) shares.of[i] = share[i];
  return start<true>(in, rows, type, of, shares, nullptr);
}

}  // namespace skein::kernels::gpu
