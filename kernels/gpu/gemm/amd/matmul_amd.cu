// The GEMM of AMD GPUs: on matrix cores where the GPU has them, else by dot products. Weights are on the side of
// outputs, the rows of the batch on the other.
//
// A block has a tile of outputs by rows. Its threads load a stage of weights and inputs into registers while the stage
// before is multiplied from shared memory, then put it into the other half of the ring: one barrier per stage.
//
// Floor: decode reads every weight once, so time >= bytes of weights / bandwidth, then 2 * rows * weights / FLOP rate.
//
// Up to 16 rows: tiles of 64 outputs by 16 rows; up to 64, or where wide tiles would be fewer than the GPU has compute
// units, by 64 rows; else 128 by 128. Each takes at most 32 KB of shared memory, so that two blocks fit on a compute
// unit of every AMD GPU. A matrix is cut into segments (split-K) as the model's plan says. All shapes give the same
// bits: a sum is one chain of instructions per segment, and the segments are added in order. No choice here has been
// measured on a card.
#include "kernels/gpu/gemm/amd/matmul_amd.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "kernels/gpu/gemm/amd/store.cuh"

namespace skein::kernels::gpu {

namespace amd {

namespace {

/// before = (is_first ? 0 : before) + sums; sums = 0
template <typename t, matrix_unit unit>
__device__ void end_segment(tile_sums<t, unit>& before, tile_sums<t, unit>& sums, bool is_first) {
#pragma unroll
  for (unsigned i = 0; i < division<t>::tiles_m; ++i)
#pragma unroll
    for (unsigned j = 0; j < division<t>::tiles_n; ++j)
#pragma unroll
      for (unsigned e = 0; e < unit_layout<unit>::sums; ++e)
        before[i][j][e] = is_first ? sums[i][j][e] : before[i][j][e] + sums[i][j][e], sums[i][j][e] = 0;
}

template <typename Element, typename t, matrix_unit unit, bool adds_up>
__device__ void run_tile(const placed_gemms& all, std::uint32_t rows) {
  const work_item work = find_work<t, adds_up>(all, blockIdx.x);
  if (work.row >= rows) return;
  const place<t> at;
  tile_sums<t, unit> sums = {};
  if constexpr (adds_up) {
    tile_sums<t, unit> before;
    bool is_first = true;
    const auto end = [&] { end_segment<t, unit>(before, sums, is_first), is_first = false; };
    multiply<Element, t, unit>(work, rows, at, sums, end);
    end();
    store<Element, t, unit>(work, rows, at, before);
  } else {
    multiply<Element, t, unit>(work, rows, at, sums, [] {});
    store<Element, t, unit>(work, rows, at, sums);
  }
}

template <typename Element, typename t, matrix_unit unit, bool adds_up>
__global__ void __launch_bounds__(t::threads) matmul_amd_kernel(placed_gemms all, const std::uint32_t* row_count) {
#if defined(SKEIN_GPU_EMULATOR)
  run_tile<Element, t, unit, adds_up>(all, *row_count);
#elif defined(__HIP_DEVICE_COMPILE__)
  run_tile<Element, t, native_unit, adds_up>(all, *row_count);
#endif
}

struct tile_launch {
  stream_handle in;
  element type;
  std::span<const gemm> gemms;
  const std::uint32_t* row_count;
  std::uint32_t rows_room;
  bool adds_up;
};

template <typename t>
std::uint32_t count_tiles(std::span<const gemm> gemms, std::uint32_t rows, bool adds_up) {
  std::uint32_t items = 0;
  for (const gemm& p : gemms) items += (p.matrix.outputs + t::outputs - 1) / t::outputs * (adds_up ? 1 : p.segments);
  return items * ((rows + t::columns - 1) / t::columns);
}

template <typename t, matrix_unit unit>
result<void> launch_tiles(const tile_launch& what) {
  placed_gemms all{};
  all.row_tiles = (what.rows_room + t::columns - 1) / t::columns;
  for (const gemm& p : what.gemms) {
    all.first_item[all.count] = all.items;
    all.of[all.count++] = p;
    all.items += (p.matrix.outputs + t::outputs - 1) / t::outputs * (what.adds_up ? 1 : p.segments);
  }
  const auto start = [&](auto kernel) -> result<void> {
    if (const auto r = allow_shared_bytes(kernel, t::shared_bytes); !r) return r;
    return launch({"matmul", {all.items * all.row_tiles}, {t::threads}, t::shared_bytes, what.in}, kernel, all,
                  what.row_count);
  };
  if (what.type == element::f16)
    return what.adds_up ? start(matmul_amd_kernel<half, t, unit, true>)
                        : start(matmul_amd_kernel<half, t, unit, false>);
  return what.adds_up ? start(matmul_amd_kernel<bf16, t, unit, true>) : start(matmul_amd_kernel<bf16, t, unit, false>);
}

template <matrix_unit unit>
result<void> launch_by(const tile_launch& what) {
  if (what.rows_room <= few_tiles::columns) return launch_tiles<few_tiles, unit>(what);
  const auto compute_units = count_sms();
  if (!compute_units) return compute_units.error();
  const bool fills = count_tiles<wide_tiles>(what.gemms, what.rows_room, what.adds_up) >= *compute_units;
  return what.rows_room > small_tiles::columns && fills ? launch_tiles<wide_tiles, unit>(what)
                                                        : launch_tiles<small_tiles, unit>(what);
}

#if defined(SKEIN_GPU_EMULATOR)
thread_local matrix_unit emulated = warp_width == 32 ? matrix_unit::wmma_11 : matrix_unit::mfma;

result<void> launch_by_unit(const tile_launch& what) {
  if (emulated == matrix_unit::dot) return launch_by<matrix_unit::dot>(what);
  if constexpr (warp_width == 32) {
    check(emulated == matrix_unit::wmma_11 || emulated == matrix_unit::wmma_12);
    return emulated == matrix_unit::wmma_11 ? launch_by<matrix_unit::wmma_11>(what)
                                            : launch_by<matrix_unit::wmma_12>(what);
  } else {
    check(emulated == matrix_unit::mfma);
    return launch_by<matrix_unit::mfma>(what);
  }
}
#else
result<void> launch_by_unit(const tile_launch& what) { return launch_by<matrix_unit::native>(what); }
#endif

}  // namespace

}  // namespace amd

#if defined(SKEIN_GPU_EMULATOR)
void emulate_unit(matrix_unit unit) { amd::emulated = unit; }
#endif

bool amd_splits(std::span<const gemm>, std::uint32_t rows_room) { return rows_room <= amd::small_tiles::columns; }

result<void> matmul_amd(stream_handle in, element type, std::span<const gemm> gemms, const std::uint32_t* row_count,
                        std::uint32_t rows_room) {
  check_gemms(type, gemms);
  check(type != element::f32);
  if (has_turns(gemms))
    return in_two_launches(gemms, [&](auto some) { return matmul_amd(in, type, some, row_count, rows_room); });
  if (std::ranges::any_of(gemms, is_quantised)) return matmul(in, type, gemms, row_count, rows_room);
  bool segments = false, parts = false;
  for (const gemm& p : gemms) {
    segments |= p.segments > 1;
    parts |= p.how.to == destination::parts;
  }
  if (parts)
    for (const gemm& p : gemms) check(p.segments == 1 || p.how.to == destination::parts);
  return amd::launch_by_unit({in, type, gemms, row_count, rows_room, segments && !parts});
}

}  // namespace skein::kernels::gpu
