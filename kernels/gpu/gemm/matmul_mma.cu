// The GEMM on the tensor cores of sm_75 and newer, by mma.sync. Weights are on the 16-row side of the instruction, the
// rows of the batch on the other, so that one row uses an eighth of the instruction and not a sixteenth.
//
// Second products (`turn`) are the last blocks of a launch of up to 64 rows: they load their weights and then wait for
// the first ones, which saves a launch.
//
// A block has a tile of outputs by rows. Its threads copy stages of weights and inputs, 64 inputs deep, to a ring in
// shared memory (cp.async), from which ldmatrix reads them without bank conflicts, and
// multiply the stages that have arrived. Weights do not depend on the preceding kernel: with PDL the first ring of them
// is requested before that kernel has ended.
//
// Floor: decode reads every weight once, so time >= bytes of weights / bandwidth, then 2 * rows * weights / FLOP rate.
//
// Up to 64 rows: tiles of 64 outputs by 8, 16, 32 or 64 rows in rings of 48 KB, so that two blocks of any card (one on
// sm_75) have about 70 KB of weights in flight; bandwidth times latency is 20 KB for an SM of an H100 and 6 KB for one
// of an RTX 4090. A matrix is cut into enough segments (split-K) to give every SM two blocks. With more rows, tiles of
// 128 outputs by 128 or 256 rows. All shapes give the same bits: a sum is one chain of instructions per segment, and
// the segments are added in order; to an output of epilogue::add_f32 each segment is added by itself, so that a wide
// tile need not keep two sets of sums in registers.
#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "kernels/gpu/device/convert.cuh"
#include "kernels/gpu/device/fragments.cuh"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/device/vec.cuh"
#include "kernels/gpu/gemm/epilogue.cuh"
#include "kernels/gpu/gemm/matmul_mma.hpp"
#include "kernels/gpu/gemm/mma_tiles.cuh"

namespace skein::kernels::gpu {

namespace mma {

namespace {

/// Copies stages of `rows` rows, a part of a stage at a time. Rows at and beyond `end` are zero.
template <typename t, int rows, bool ahead>
class stage_copier {
 public:
  /// As many as there are steps in which operands of the same stage are loaded.
  static constexpr unsigned parts = t::steps - 1;

  /// `stage`: the first one.
  __device__ stage_copier(const std::byte* from, std::size_t stride, std::uint32_t first, std::uint32_t end,
                          std::uint32_t stage)
      : from_(from + (first + own_row()) * stride + stage * t::row_bytes + threadIdx.x % t::packets_of_row * 16),
        step_(rows_at_once * stride),
        left_(static_cast<int>(end - first) - static_cast<int>(own_row())),
        to_(t::place(own_row(), threadIdx.x % t::packets_of_row)) {}

  /// `stage`: counted from the first one.
  __device__ void copy(std::byte* to, std::uint32_t stage, unsigned part) const {
    constexpr unsigned each = (rows + rows_at_once - 1) / rows_at_once;
    if (rows < rows_at_once && own_row() >= rows) return;
#pragma unroll
    for (unsigned i = 0; i < each; ++i)
      if (i % parts == part)
        copy_packet<ahead>(to + to_ + i * rows_at_once * t::row_bytes, from_ + i * step_ + stage * t::row_bytes,
                           static_cast<int>(i * rows_at_once) < left_);
  }

 private:
  static constexpr unsigned rows_at_once = t::threads / t::packets_of_row;
  static_assert(rows_at_once % 8 == 0);  // so that packets of all rows of a thread are moved alike
  __device__ static unsigned own_row() { return threadIdx.x / t::packets_of_row; }

  const std::byte* from_;
  std::size_t step_;
  int left_;
  unsigned to_;
};

template <typename t>
class ring {
 public:
  __device__ ring(const placed_gemms& all, const work_item& work)
      : of_weights_(work.gemm->weights, work.gemm->weight_stride, work.output, work.gemm->weight_rows, work.first),
        of_inputs_(work.gemm->inputs, work.gemm->in_stride, work.row, all.rows, work.first) {}

  [[nodiscard]] __device__ std::byte* weights(unsigned stage) const { return stages_ + stage * t::stage_bytes; }
  [[nodiscard]] __device__ std::byte* inputs(unsigned stage) const { return weights(stage) + t::weight_bytes; }
  __device__ void copy_weights(unsigned stage, std::uint32_t which, unsigned part) const {
    of_weights_.copy(weights(stage), which, part);
  }
  __device__ void copy_inputs(unsigned stage, std::uint32_t which, unsigned part) const {
    of_inputs_.copy(inputs(stage), which, part);
  }

 private:
  std::byte* stages_ = dynamic_shared<std::byte>();
  stage_copier<t, t::outputs, true> of_weights_;
  stage_copier<t, t::columns, false> of_inputs_;
};

/// A warp's place in its block, and a lane's in its warp.
template <typename t>
struct place {
  unsigned lane = threadIdx.x % 32, g = lane / 4, t4 = lane % 4;
  unsigned first_output = threadIdx.x / 32 % t::warps_m * (t::outputs / t::warps_m);
  unsigned first_column = threadIdx.x / 32 / t::warps_m * (t::columns / t::warps_n);
};

/// The operands of 16 inputs.
template <typename t>
struct operands {
  fragment_a a[t::tiles_m];
  fragment_b b[t::tiles_n];

  /// `k`: which 16 inputs of a stage.
  __device__ void load(const ring<t>& memory, unsigned stage, const place<t>& at, unsigned k) {
    const std::byte* const weights = memory.weights(stage);
    const std::byte* const inputs = memory.inputs(stage);
#pragma unroll
    for (int i = 0; i < t::tiles_m; ++i)
      load_fragments(weights + t::place(at.first_output + i * 16 + at.lane % 16, k * 2 + at.lane / 16), a[i]);
    if constexpr (t::tiles_n == 1) {  // the other half is not used: a load of two matrices would take as long
      fragment_a both;
      load_fragments(inputs + t::place(at.first_column + at.lane % 8, k * 2 + at.lane / 8 % 2), both);
      b[0][0] = both[0], b[0][1] = both[1];
    } else {
#pragma unroll
      for (int j = 0; j < t::tiles_n; j += 2) {
        fragment_a both;
        const unsigned row = at.first_column + j * 8 + at.lane / 16 * 8 + at.lane % 8;
        load_fragments(inputs + t::place(row, k * 2 + at.lane / 8 % 2), both);
        b[j][0] = both[0], b[j][1] = both[1], b[j + 1][0] = both[2], b[j + 1][1] = both[3];
      }
    }
  }
};

template <typename t>
using tile_sums = float[t::tiles_m][t::tiles_n][4];

template <typename Element, typename t>
__device__ void multiply_operands(const operands<t>& of, tile_sums<t>& sums) {
#pragma unroll
  for (int i = 0; i < t::tiles_m; ++i)
#pragma unroll
    for (int j = 0; j < t::tiles_n; ++j) multiply_fragments<Element>(sums[i][j], of.a[i], of.b[j]);
}

/// before = (is_first ? 0 : before) + sums; sums = 0
template <typename t>
__device__ void end_segment(tile_sums<t>& before, tile_sums<t>& sums, bool is_first) {
#pragma unroll
  for (int i = 0; i < t::tiles_m; ++i)
#pragma unroll
    for (int j = 0; j < t::tiles_n; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        before[i][j][e] = is_first ? sums[i][j][e] : before[i][j][e] + sums[i][j][e], sums[i][j][e] = 0;
}

/// Computes the sums of an item's tile. `end_segment(i)` is called before the first tile of each later segment.
/// Operands are loaded while the ones before them are multiplied, also across stages.
template <typename Element, typename t, typename End>
__device__ void multiply(const placed_gemms& all, const work_item& work, const place<t>& at, tile_sums<t>& sums,
                         End end_segment) {
  constexpr unsigned ahead = t::stages - 1;
  const ring<t> memory(all, work);
  const std::uint32_t count = work.count, segment_depth = work.gemm->segment_depth * t::stages_of_tile;
  const auto copy_first = [&](bool weights, bool inputs, unsigned i) {
#pragma unroll
    for (unsigned part = 0; part < t::steps - 1; ++part) {
      if (weights) memory.copy_weights(i, i, part);
      if (inputs) memory.copy_inputs(i, i, part);
    }
  };
  const bool waits = all.pdl || work.gemm->when == turn::second;
  if (waits) {
#pragma unroll
    for (unsigned i = 0; i < ahead; ++i)
      if (i < count) copy_first(true, false, i);
    if (all.pdl_early_launch) pdl_launch_dependents();
    pdl_wait();
    if (work.gemm->when == turn::second) {
      if (threadIdx.x == 0) all.done.await_writers(), all.done.count_reader();
      __syncthreads();
    }
  }
#pragma unroll
  for (unsigned i = 0; i < ahead; ++i) {
    if (i < count) copy_first(!waits, true, i);
    end_packets();
  }
  if (count <= ahead) pdl_launch_dependents();
  await_packets<ahead - 1>();
  __syncthreads();
  operands<t> of[2];
  of[0].load(memory, 0, at, 0);
  unsigned stage = 0, free_stage = ahead;
  std::uint32_t in_segment = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if constexpr (t::adds_up) {
      if (in_segment == segment_depth) end_segment(i), in_segment = 0;
      ++in_segment;
    }
    const bool copies = i + ahead < count;
    const unsigned next = stage + 1 == t::stages ? 0 : stage + 1;
#pragma unroll
    for (unsigned k = 0; k < t::steps; ++k) {
      if (k < t::steps - 1) {
        of[(k + 1) % 2].load(memory, stage, at, k + 1);
        if (copies) memory.copy_weights(free_stage, i + ahead, k), memory.copy_inputs(free_stage, i + ahead, k);
      } else {
        end_packets();
        await_packets<ahead - 1>();
        __syncthreads();  // the next stage has arrived, and this one has been read
        if (i + 1 < count) of[0].load(memory, next, at, 0);
      }
      multiply_operands<Element, t>(of[k % 2], sums);
    }
    if (i + ahead + 1 == count) pdl_launch_dependents();
    free_stage = stage, stage = next;
  }
}

template <typename t>
__device__ void copy_sums(const tile_sums<t>& from, tile_sums<t>& to) {
#pragma unroll
  for (int i = 0; i < t::tiles_m; ++i)
#pragma unroll
    for (int j = 0; j < t::tiles_n; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) to[i][j][e] = from[i][j][e];
}

/// put(index, sum) for each of a lane's sums within the output.
template <typename t, typename Put>
__device__ void put_each(const work_item& work, std::uint32_t rows, const place<t>& at, const tile_sums<t>& sums,
                         Put put) {
  const placed_gemm& p = *work.gemm;
#pragma unroll
  for (int j = 0; j < t::tiles_n; ++j)
#pragma unroll
    for (int i = 0; i < t::tiles_m; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const std::uint32_t output = work.output + at.first_output + i * 16 + at.g + e / 2 * 8;
        const std::uint32_t row = work.row + at.first_column + j * 8 + at.t4 * 2 + e % 2;
        if (output < p.outputs && row < rows) put(std::size_t{row} * p.out_stride + output, sums[i][j][e]);
      }
}

/// Stores the sums of a warp 16 bytes at a time: lays down eight rows in shared memory, then writes whole rows.
template <typename Stored, typename t>
__device__ void store_packets(const work_item& work, std::uint32_t rows, const place<t>& at, const tile_sums<t>& sums,
                              Stored* out) {
  constexpr unsigned size = packet<Stored>::size, width = t::tiles_m * 16, in_row = width / size;
  const placed_gemm& p = *work.gemm;
  float* const piece = dynamic_shared<float>() + threadIdx.x / 32 * 8 * t::piece_floats;
#pragma unroll
  for (int j = 0; j < t::tiles_n; ++j) {
    warp_barrier();
#pragma unroll
    for (int i = 0; i < t::tiles_m; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        piece[(at.t4 * 2 + e % 2) * t::piece_floats + i * 16 + at.g + e / 2 * 8] = sums[i][j][e];
    warp_barrier();
#pragma unroll
    for (unsigned q = at.lane; q < 8 * in_row; q += 32) {
      const unsigned line = q / in_row, column = q % in_row * size;
      const std::uint32_t output = work.output + at.first_output + column;
      const std::uint32_t row = work.row + at.first_column + j * 8 + line;
      if (row >= rows || output >= p.outputs) continue;
      float values[size];
#pragma unroll
      for (unsigned e = 0; e < size; ++e) values[e] = piece[line * t::piece_floats + column + e];
      packet<Stored> rounded;
      from_floats(values, rounded.values);
      Stored* const to = out + std::size_t{row} * p.out_stride + output;
      if (output + size <= p.outputs)
        store_packet(to, rounded);
      else
        for (unsigned e = 0; output + e < p.outputs; ++e) to[e] = rounded.values[e];
    }
  }
}

template <typename Stored, typename t>
__device__ void store_as(const work_item& work, std::uint32_t rows, const place<t>& at, const tile_sums<t>& sums,
                         Stored* out) {
  if constexpr (t::lays_down)
    if (work.gemm->in_packets) {
      __syncthreads();  // the stages have been read
      return store_packets<Stored, t>(work, rows, at, sums, out);
    }
  put_each<t>(work, rows, at, sums, [&](std::size_t i, float sum) { out[i] = from_float<Stored>(sum); });
}

template <typename t>
__device__ void add_to_output(const work_item& work, std::uint32_t rows, const place<t>& at, const tile_sums<t>& sums) {
  auto* const floats = static_cast<float*>(work.gemm->out);
  // Added by the L2 cache, in this order for each element; here each addition would wait for a load.
  put_each<t>(work, rows, at, sums, [&](std::size_t i, float sum) { atomicAdd(floats + i, sum); });
}

template <typename Element, typename t>
__device__ void store(const work_item& work, std::uint32_t rows, const place<t>& at, tile_sums<t>& sums) {
  const placed_gemm& p = *work.gemm;
  apply_epilogue_fast(p.how, reinterpret_cast<float(&)[t::tiles_m * t::tiles_n * 4]>(sums));
  switch (p.how) {
    case epilogue::add_f32: return add_to_output<t>(work, rows, at, sums);
    case epilogue::store_f32:
    case epilogue::store_parts:
      return store_as<float, t>(work, rows, at, sums, static_cast<float*>(p.out) + work.segment * p.part_stride);
    case epilogue::store_f16: return store_as<half, t>(work, rows, at, sums, static_cast<half*>(p.out));
    default: return store_as<Element, t>(work, rows, at, sums, static_cast<Element*>(p.out));
  }
}

template <typename t>
__device__ void clear(tile_sums<t>& sums) {
#pragma unroll
  for (int i = 0; i < t::tiles_m; ++i)
#pragma unroll
    for (int j = 0; j < t::tiles_n; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[i][j][e] = 0;
}

template <typename Element, typename t>
__global__ void __launch_bounds__(t::threads) matmul_mma_kernel(const __grid_constant__ placed_gemms all) {
#if defined(SKEIN_GPU_EMULATOR) || __CUDA_ARCH__ >= 750
  const work_item work = find_work<t>(all, blockIdx.x);
  const place<t> at;
  tile_sums<t> sums = {};
  if constexpr (t::segments == takes::adds_each) {
    multiply<Element, t>(all, work, at, sums, [&](std::uint32_t) {
      add_to_output<t>(work, all.rows, at, sums);
      clear<t>(sums);
    });
  } else if constexpr (t::segments == takes::sum_of_all) {
    tile_sums<t> before;
    const std::uint32_t segment_depth = work.gemm->segment_depth * t::stages_of_tile;
    multiply<Element, t>(all, work, at, sums,
                         [&](std::uint32_t i) { end_segment<t>(before, sums, i == segment_depth); });
    if (work.count > segment_depth) end_segment<t>(before, sums, false), copy_sums<t>(before, sums);
  } else {
    multiply<Element, t>(all, work, at, sums, [](std::uint32_t) {});
  }
  if (all.pdl) pdl_wait();  // already complete; but every thread that writes must call this
  store<Element, t>(work, all.rows, at, sums);
  if (work.gemm->when == turn::first) {
    __syncthreads();
    if (threadIdx.x == 0) all.done.count_writer();
  }
#endif
}

bool fits_packets(const gemm& p) {
  const std::size_t bytes = p.how == epilogue::store_f32 || p.how == epilogue::store_parts ? 4 : 2;
  return reinterpret_cast<std::uintptr_t>(p.out) % 16 == 0 && p.out_stride * bytes % 16 == 0 &&
         p.part_stride * bytes % 16 == 0;
}

template <typename t>
result<void> launch_tiles(stream_handle in, element type, std::span<const gemm> gemms, std::uint32_t rows,
                          const device_profile& profile) {
  placed_gemms all{};
  all.rows = rows, all.row_tiles = (rows + t::columns - 1) / t::columns;
  all.pdl = profile.has_pdl, all.pdl_early_launch = gemms.front().pdl_early_launch;
  for (const gemm& p : gemms) {
    placed_gemm& to = all.of[all.count++];
    to.weights = static_cast<const std::byte*>(p.matrix), to.inputs = static_cast<const std::byte*>(p.in);
    to.weight_stride = std::size_t{padded(p.inputs)} * 2, to.in_stride = std::size_t{p.in_stride} * 2;
    to.out = p.out, to.part_stride = p.part_stride;
    to.weight_rows = padded(p.outputs), to.outputs = p.outputs, to.out_stride = p.out_stride;
    to.depth = padded(p.inputs) / matrix_tile, to.segment_depth = segment_tiles(p);
    to.tiles = (p.outputs + t::outputs - 1) / t::outputs;
    to.first_item = all.items;
    to.how = p.how, to.when = has_turns(gemms) ? p.when : turn::any, to.in_packets = fits_packets(p);
    if (to.when == turn::first) all.done.writers += to.tiles;
    if (to.when == turn::second) all.done.at = p.done, all.done.readers += to.tiles;
    all.items += to.tiles * (t::adds_up ? 1 : p.segments);
  }
  const auto start = [&](auto kernel) -> result<void> {
    if (const auto r = allow_shared_bytes(kernel, t::shared_bytes); !r) return r;
    return launch({"matmul", {all.items * all.row_tiles}, {t::threads}, t::shared_bytes, in, true}, kernel, all);
  };
  return type == element::f16 ? start(matmul_mma_kernel<half, t>) : start(matmul_mma_kernel<bf16, t>);
}

template <takes work>
using small_tiles = tiling<64, 64, 2, 2, 3, work>;
template <takes work>
using flat_tiles = tiling<64, 128, 2, 2, 3, work>;
template <takes work>
using square_tiles = tiling<128, 128, 2, 4, 3, work>;
template <takes work>
using broad_tiles = tiling<128, 192, 2, 4, 3, work>;
template <takes work>
using wide_tiles = tiling<128, 256, 2, 4, 3, work>;
/// For at most 99 KB of shared memory.
template <takes work>
using broad_shallow_tiles = tiling<128, 192, 2, 4, 4, work, 32>;
template <takes work>
using wide_shallow_tiles = tiling<128, 256, 2, 4, 4, work, 32>;

/// What the shape of tiles is chosen by.
struct candidate {
  mma_shape shape;
  std::uint32_t outputs, columns;
  std::size_t shared_bytes;
  double time;  ///< of an SM for a tile by 64 inputs: in us on an H100, with 4,096 rows; see docs/performance.md
};
constexpr std::array candidates{
    candidate{mma_shape::small, 64, 64, small_tiles<takes::one>::shared_bytes, 0.28},
    candidate{mma_shape::flat, 64, 128, flat_tiles<takes::one>::shared_bytes, 0.43},
    candidate{mma_shape::square, 128, 128, square_tiles<takes::one>::shared_bytes, 0.87},
    candidate{mma_shape::broad, 128, 192, broad_shallow_tiles<takes::one>::shared_bytes, 1.07},
    candidate{mma_shape::wide, 128, 256, wide_shallow_tiles<takes::one>::shared_bytes, 1.28}};

struct choice {
  mma_shape shape;
  double time;
};
/// The shape with which the SM that has the most tiles takes the least time, for more than 64 rows.
choice choose_shape(std::span<const gemm> gemms, std::uint32_t rows, takes work, const device_profile& profile) {
  choice best{mma_shape::small, 0};
  for (const candidate& c : candidates) {
    if (c.shared_bytes > profile.shared_bytes_per_block) continue;
    if (work == takes::sum_of_all && c.columns > 128) continue;  // its sums would need twice the registers
    std::uint32_t tiles = 0, depth = 0;
    for (const gemm& p : gemms) {
      tiles += (p.outputs + c.outputs - 1) / c.outputs * (work == takes::one ? p.segments : 1);
      depth = std::max(depth, work == takes::one ? segment_tiles(p) : padded(p.inputs) / matrix_tile);
    }
    tiles *= (rows + c.columns - 1) / c.columns;
    const double time = (tiles + profile.sm_count - 1) / profile.sm_count * c.time * depth;
    if (best.time == 0 || time < best.time) best = {c.shape, time};
  }
  return best;
}

template <takes work>
result<void> launch_shape_of(mma_shape shape, stream_handle in, element type, std::span<const gemm> gemms,
                             std::uint32_t rows, const device_profile& profile) {
  const auto start = [&]<typename t>() { return launch_tiles<t>(in, type, gemms, rows, profile); };
  if constexpr (work != takes::sum_of_all) {
    const bool deep = wide_tiles<work>::shared_bytes <= profile.shared_bytes_per_block;
    if (shape == mma_shape::broad)
      return deep ? start.template operator()<broad_tiles<work>>()
                  : start.template operator()<broad_shallow_tiles<work>>();
    if (shape == mma_shape::wide)
      return deep ? start.template operator()<wide_tiles<work>>()
                  : start.template operator()<wide_shallow_tiles<work>>();
  }
  if (shape == mma_shape::square) return start.template operator()<square_tiles<work>>();
  if (shape == mma_shape::flat) return start.template operator()<flat_tiles<work>>();
  return start.template operator()<small_tiles<work>>();
}

std::optional<mma_shape> imposed_shape;

}  // namespace

}  // namespace mma

void impose_shape(std::optional<mma_shape> shape) { mma::imposed_shape = shape; }

// For a launch of one product its consumer's reads of partial sums count as a tenth.
bool mma_splits(std::span<const gemm> gemms, std::uint32_t rows) {
  if (rows <= 128 || rows > split_rows_max) return rows <= 128;
  const auto profile = current_profile();
  if (!profile) return false;
  const auto launch = independent(gemms);
  const auto whole = launch.size() == 1 ? mma::takes::adds_each : mma::takes::sum_of_all;
  return mma::choose_shape(launch, rows, mma::takes::one, *profile).time <
         0.9 * mma::choose_shape(launch, rows, whole, *profile).time;
}

result<void> matmul_mma(stream_handle in, element type, std::span<const gemm> gemms, const std::uint32_t*,
                        std::uint32_t rows_room) {
  check(!gemms.empty());
  check(type != element::f32);
  check(is_in_turn(gemms));
  if (has_turns(gemms) && rows_room > 64)
    return in_two_launches(gemms, [&](auto some) { return matmul_mma(in, type, some, nullptr, rows_room); });
  bool segments = false, parts = false;
  for (const gemm& p : gemms) {
    check(p.in_stride >= padded(p.inputs));
    check((p.segments - 1) * segment_tiles(p) * matrix_tile < padded(p.inputs));
    segments |= p.segments > 1;
    parts |= p.how == epilogue::store_parts;
  }
  check(!segments || parts == mma_splits(gemms, rows_room));
  const auto profile = current_profile();
  if (!profile) return profile.error();
  using mma::takes;
  const auto by_shape = [&]<takes work>() {
    const mma_shape shape =
        mma::imposed_shape ? *mma::imposed_shape : mma::choose_shape(gemms, rows_room, work, *profile).shape;
    return mma::launch_shape_of<work>(shape, in, type, gemms, rows_room, *profile);
  };
  if (segments && !parts)
    return gemms.size() == 1 && gemms.front().how == epilogue::add_f32
               ? by_shape.template operator()<takes::adds_each>()
               : by_shape.template operator()<takes::sum_of_all>();
  const auto few = [&]<typename t>() { return mma::launch_tiles<t>(in, type, gemms, rows_room, *profile); };
  if (rows_room <= 8) return few.template operator()<mma::tiling<64, 8, 4, 1, 5, takes::one>>();
  if (rows_room <= 16) return few.template operator()<mma::tiling<64, 16, 4, 1, 4, takes::one>>();
  if (rows_room <= 32) return few.template operator()<mma::tiling<64, 32, 4, 1, 4, takes::one>>();
  if (rows_room <= 64) return few.template operator()<mma::small_tiles<takes::one>>();
  return by_shape.template operator()<takes::one>();
}

}  // namespace skein::kernels::gpu
