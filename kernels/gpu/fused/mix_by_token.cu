// A block has 64 channels and processes 16 rows at a time. Its part of the pairs stays in registers as right operands;
// the inner values of 16 rows are left operands in shared memory. In both, a lane has four adjacent inputs where the
// instruction expects two and two, so that it loads them at once; sums do not depend on that.
//
// With few rows, time is latency: all loads after the wait for the preceding kernel are issued together. What does not
// depend on that kernel is loaded before. Rows are normalised with the statistics that shift_for_shares stored, so that
// no block needs a whole row.
//
// Floor, in bytes per row: width * (8 for x, and outputs), and once the pairs.
#include "kernels/gpu/fused/mix_by_token.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "kernels/gpu/device/gemm_rows.cuh"
#include "kernels/gpu/device/mma.cuh"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/gemm/epilogue.cuh"
#include "kernels/gpu/ops/shift_row.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned warps = 8, threads = warps * warp_width;
constexpr unsigned channels_of_warp = 8, channels_of_block = warps * channels_of_warp;
constexpr unsigned rows_of_tile = 16, step = 16;  // rows and inputs of an instruction
constexpr unsigned inputs_max = matrix_tile;

/// The inner values of one pair: rows of the tile by inputs. Rows are spread over the banks.
template <unsigned steps>
struct alignas(16) inner_values {
  operand_pair pairs[rows_of_tile][(steps * step + 8) / 2];

  __device__ const operand_pair* at(unsigned row, unsigned column) const { return &pairs[row][column / 2]; }
  /// Stores inputs `first` .. `first` + 3, a multiple of 4, where a lane that has four adjacent inputs looks for them.
  __device__ void store(unsigned row, unsigned first, const float (&values)[4]) {
    operand_pair* const of_step = &pairs[row][first / step * (step / 2) + first % step / 4];
    of_step[0] = to_operands(values[0], values[1]), of_step[4] = to_operands(values[2], values[3]);
  }
};

/// The two channels of a lane.
using two = float[2];

/// A row of the residual stream and what its norm needs, whose loads are issued at construction.
struct row_on_its_way {
  side_by_side<float, 2> x;
  row_statistics of_row;

  row_on_its_way() = default;
  __device__ row_on_its_way(const mix_by_token_parameters& of, std::uint32_t t, std::uint32_t channel)
      : x(load_side_by_side<2>(of.shift.from.x + static_cast<std::size_t>(t) * of.shift.width + channel)),
        of_row(of.statistics[t]) {}
  /// As normalise does.
  __device__ void norm(const two& weight, const two& bias, two& to) const {
    for (unsigned e = 0; e < 2; ++e)
      to[e] = multiply_add((x.values[e] - of_row.mean) * of_row.scale, weight[e], bias[e]);
  }
};

/// A row and its run.
struct row_place {
  std::uint32_t t = 0;
  sequence_run run = {};

  row_place() = default;
  __device__ row_place(const device_batch& rows, std::uint32_t row) : t(row), run(rows.runs[rows.run_of_row[row]]) {}
  [[nodiscard]] __device__ bool begins() const { return t == run.first_row; }
};

/// A row and the row before it, whose loads are issued at construction.
template <typename Kept>
struct row_pair {
  row_place at;
  row_on_its_way now, other;  ///< the other is the row before, or if the run begins its last row
  on_their_way<Kept, 2> kept;

  __device__ row_pair(const mix_by_token_parameters& of, const row_place& place, std::uint32_t channel)
      : at(place),
        now(of, at.t, channel),
        other(of, at.begins() ? at.run.first_row + at.run.rows - 1 : at.t - 1, channel) {
    if (at.begins()) kept = on_their_way<Kept, 2>(x_prev_of<Kept>(of.shift, at.run) + channel);
  }
  /// The row and the one before it, normalised; x_prev becomes the run's last row.
  __device__ void read(const mix_by_token_parameters& of, std::uint32_t channel, const two& weight, const two& bias,
                       bool stores, two& row, two& before) const {
    now.norm(weight, bias, row);
    other.norm(weight, bias, before);
    if (at.begins()) {
      const two last = {before[0], before[1]};
      kept.read(before);
      if (stores) store_floats(x_prev_of<Kept>(of.shift, at.run) + channel, last);
    } else {
      for (float& value : before) value = to_float(from_float<Kept>(value));
    }
  }
};

using four = float[4];

/// Four inner values, as rows or as partial sums to which tanh is yet to be applied.
template <typename Element, bool in_parts>
struct inner_on_its_way {
  std::conditional_t<in_parts, gemms_on_their_way<float, 4>, on_their_way<Element, 4>> loaded;

  __device__ void ask(const gemm_rows& low, std::uint32_t row, unsigned at) {
    if constexpr (in_parts)
      loaded = {low, row, at};
    else
      loaded = on_their_way<Element, 4>(static_cast<const Element*>(low.data) +
                                        static_cast<std::size_t>(row) * low.stride + at);
  }
  __device__ void read(four& values) const {
    loaded.read(values);
    if (!in_parts) return;
    apply_activation_fast(activation_function::tanh, values);
    for (float& value : values) value = to_float(from_float<Element>(value));
  }
};

/// Reads the inner values of 16 rows, those that there are. A thread issues all its loads before it waits for one.
template <typename Element, bool in_parts, unsigned steps>
__device__ void read_inner(const gemm_rows& low, std::uint32_t first_row, std::uint32_t count,
                           inner_values<steps> (&to)[shifts_by_row_max]) {
  constexpr unsigned fours = steps * step / 4, all = rows_of_tile * shifts_by_row_max * fours;
  constexpr unsigned each = (all + threads - 1) / threads;
  inner_on_its_way<Element, in_parts> some[each];
  const auto place = [&](unsigned n, auto use) {
    const unsigned i = threadIdx.x + n * threads, input = i % fours * 4;
    const unsigned pair = i / fours % shifts_by_row_max, row = i / fours / shifts_by_row_max;
    if ((all % threads == 0 || i < all) && first_row + row < count) use(row, pair, input);
  };
#pragma unroll
  for (unsigned n = 0; n < each; ++n)
    place(n, [&](unsigned row, unsigned pair, unsigned input) {
      some[n].ask(low, first_row + row, pair * inputs_max + input);
    });
#pragma unroll
  for (unsigned n = 0; n < each; ++n)
    place(n, [&](unsigned row, unsigned pair, unsigned input) {
      four values;
      some[n].read(values);
      to[pair].store(row, input, values);
    });
}

/// Stores the inner values that partial sums make, a thread four of them.
template <typename Element>
__global__ void __launch_bounds__(threads)
    finish_inner_kernel(device_batch rows, gemm_rows parts, Element* whole, std::uint32_t stride) {
  pdl_launch_dependents();
  pdl_wait();
  constexpr unsigned fours = shifts_by_row_max * inputs_max / 4;
  const std::uint32_t i = blockIdx.x * threads + threadIdx.x, row = i / fours, at = i % fours * 4;
  if (row >= rows.counts->rows) return;
  inner_on_its_way<Element, true> sums;
  sums.ask(parts, row, at);
  four values;
  sums.read(values);
  store_floats(whole + static_cast<std::size_t>(row) * stride + at, values);
}

/// Partial sums of more rows than this are added up once, before all blocks read them.
constexpr std::uint32_t rows_in_parts_max = 32;

template <typename Element, typename Kept, unsigned steps, bool in_parts>
__global__ void __launch_bounds__(threads, in_parts ? 1 : 2)
    mix_by_token_kernel(device_batch rows, mix_by_token_parameters of) {
  __shared__ inner_values<steps> inner[shifts_by_row_max];
  pdl_launch_dependents();
  const unsigned warp = threadIdx.x / warp_width, lane = threadIdx.x % warp_width, g = lane / 4, t = lane % 4;
  const std::uint32_t first_channel = blockIdx.x * channels_of_block + warp * channels_of_warp;
  const std::uint32_t channel = first_channel + 2 * t;
  tile_b weights[shifts_by_row_max][steps];
  two mixes[shifts_by_row_max];
#pragma unroll
  for (unsigned i = 0; i < shifts_by_row_max; ++i) {
#pragma unroll
    for (unsigned k = 0; k < steps; ++k) {
      four loaded;
      load_floats(static_cast<const Element*>(of.pairs[i].data) + std::size_t{first_channel + g} * inputs_max +
                      k * step + 4 * t,
                  loaded);
      weights[i][k][0] = to_operands(loaded[0], loaded[1]);
      weights[i][k][1] = to_operands(loaded[2], loaded[3]);
    }
    load_floats(of.shift.mix[i] + channel, mixes[i]);
  }
  two norm_weight, norm_bias;
  load_floats(of.shift.norm.weight + channel, norm_weight);
  load_floats(of.shift.norm.bias + channel, norm_bias);
  const std::uint32_t count = rows.counts->rows;
  std::uint32_t first = blockIdx.y * rows_of_tile;
  if (first >= count) return pdl_wait();
  row_place places[2];
  const auto find_places = [&] {
    for (unsigned half = 0; half < 2; ++half) places[half] = row_place(rows, min(first + g + 8 * half, count - 1));
  };
  find_places();
  pdl_wait();
  while (first < count) {
    const bool exists[2] = {first + g < count, first + g + 8 < count};
    const row_pair<Kept> pairs[2] = {{of, places[0], channel}, {of, places[1], channel}};
    read_inner<Element, in_parts>(of.low, first, count, inner);
    __syncthreads();
    first += gridDim.y * rows_of_tile;
    if (first < count) find_places();
    two now[2], before[2];
#pragma unroll
    for (unsigned half = 0; half < 2; ++half)
      pairs[half].read(of, channel, norm_weight, norm_bias, exists[half], now[half], before[half]);
#pragma unroll
    for (unsigned i = 0; i < shifts_by_row_max; ++i) {
      tile_c shares = {};
#pragma unroll
      for (unsigned k = 0; k < steps; ++k) {
        tile_a a;
        load_left(inner[i], 0, k * step, lane, a);
        multiply_tiles(shares, a, weights[i][k]);
      }
#pragma unroll
      for (unsigned half = 0; half < 2; ++half) {
        if (!exists[half]) continue;
        two out;
        for (unsigned e = 0; e < 2; ++e)
          out[e] = multiply_add(before[half][e] - now[half][e], mixes[i][e] + shares[2 * half + e], now[half][e]);
        store_floats(static_cast<Element*>(of.shift.out[i]) +
                         static_cast<std::size_t>(pairs[half].at.t) * of.shift.out_stride + channel,
                     out);
      }
    }
    __syncthreads();  // the inner values have been read
  }
}

template <typename Element>
result<void> finish_inner(stream_handle in, const device_batch& rows, const mix_by_token_parameters& of) {
  const std::uint32_t blocks = (rows.room.rows * (shifts_by_row_max * inputs_max / 4) + threads - 1) / threads;
  return launch({"finish_inner", {blocks}, {threads}, 0, in, true}, finish_inner_kernel<Element>, rows, of.low,
                static_cast<Element*>(of.whole), of.whole_stride);
}

}  // namespace

bool can_mix_by_token(element type, const device_matrix& pair) {
  return warp_width == 32 && type != element::f32 && pair.format == row_format(type) && pair.inputs <= inputs_max;
}

result<void> mix_by_token(stream_handle in, const device_batch& rows, element type, const mix_by_token_parameters& of) {
  check(can_mix_by_token(type, of.pairs[0]));
  check(of.shift.width % channels_of_block == 0 && of.shift.shifts == shifts_by_row_max);
  check(of.shift.sum == nullptr && of.shift.from.added.parts == 0);
  check(of.shift.kept_type != element::bf16);
  const auto profile = current_profile();
  if (!profile) return profile.error();
  // Blocks of many rows share the loads of the weights; few blocks would leave SMs idle.
  const std::uint32_t across = of.shift.width / channels_of_block,
                      tiles = (rows.room.rows + rows_of_tile - 1) / rows_of_tile;
  const std::uint32_t down = std::min(tiles, std::max(1u, 4 * profile->sm_count / across));
  mix_by_token_parameters with = of;
  if (of.low.parts > 0 && rows.room.rows > rows_in_parts_max) {
    if (auto r = type == element::f16 ? finish_inner<half>(in, rows, of) : finish_inner<bf16>(in, rows, of); !r)
      return r;
    with.low = {of.whole, of.whole_stride, 0, 0};
  }
  const launch_shape shape{"mix_by_token", {across, down}, {threads}, 0, in, true};
  const bool in_parts = with.low.parts > 0, is_narrow = of.pairs[0].inputs <= inputs_max / 2;
  const auto with_kept = [&]<typename Element, typename Kept>() {
    const auto start = [&](auto narrow, auto wide) { return launch(shape, is_narrow ? narrow : wide, rows, with); };
    return in_parts ? start(mix_by_token_kernel<Element, Kept, 2, true>, mix_by_token_kernel<Element, Kept, 4, true>)
                    : start(mix_by_token_kernel<Element, Kept, 2, false>, mix_by_token_kernel<Element, Kept, 4, false>);
  };
  const auto with_type = [&]<typename Element>() {
    return of.shift.kept_type == element::f32 ? with_kept.template operator()<Element, float>()
                                              : with_kept.template operator()<Element, half>();
  };
  return type == element::f16 ? with_type.template operator()<half>() : with_type.template operator()<bf16>();
}

}  // namespace skein::kernels::gpu
