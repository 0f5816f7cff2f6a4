#include "kernels/gpu/gemm/hopper/matmul_hopper.hpp"

#include <algorithm>
#include <array>

#include "kernels/gpu/gemm/hopper/matmul_few_rows.hpp"
#include "kernels/gpu/gemm/hopper/matmul_hopper.cuh"
#include "kernels/gpu/gemm/hopper/matmul_hopper_fp8.hpp"

namespace skein::kernels::gpu {

namespace {

constexpr std::uint32_t tile_columns[] = {128, 160, 192, 240, 256, 320};  // the last: not with added segments

/// The time of a tile of 128 outputs for 64 inputs, in units of some 0.21 ns: the FFN key of 7.2B at 4,096 rows took
/// 0.50, 0.59, 0.66, 0.80 and 0.88 us.
constexpr std::uint64_t tile_time(std::uint32_t columns) { return 550 + 14 * columns; }

/// An estimate of the time of a launch, in that unit. `in_parts`: each segment has tiles of its own.
std::uint64_t launch_time(std::span<const gemm> gemms, std::uint32_t rows, bool in_parts, std::uint32_t columns,
                          std::uint32_t sm_count) {
  std::uint64_t tiles = 0, depth_of_all = 0, deepest = 0;
  for (const gemm& p : gemms) {
    const std::uint64_t depth = in_parts ? segment_tiles(p) : p.matrix.depth();
    const std::uint64_t own =
        std::uint64_t{(p.matrix.outputs + 127) / 128} * (in_parts ? p.segments : 1) * ((rows + columns - 1) / columns);
    tiles += own, depth_of_all += own * depth, deepest = std::max(deepest, depth);
  }
  const std::uint64_t in_turn = (tiles + sm_count - 1) / sm_count;
  return std::max(deepest, in_turn * depth_of_all / tiles) * tile_time(columns);
}

struct width_choice {
  std::uint32_t columns;
  std::uint64_t time;  ///< of the launch
};
width_choice fastest_width(std::span<const gemm> gemms, std::uint32_t rows, bool in_parts, std::uint32_t sm_count) {
  width_choice best{};
  for (const std::uint32_t columns : std::span(tile_columns).first(in_parts ? 6 : 5)) {
    const std::uint64_t time = launch_time(gemms, rows, in_parts, columns, sm_count);
    if (best.columns == 0 || time < best.time) best = {columns, time};
  }
  return best;
}

/// Of pairs, in the unit of tile_time: an estimated 4 us to exchange 61 KB one way and 123 KB the other between two SMs
/// and to synchronise twice.
constexpr std::uint32_t exchange_time = 19'000;
constexpr std::uint64_t time_in_pairs(const gemm& p) {
  return p.matrix.depth() * tile_time(pair_columns) / 2 + exchange_time;
}
/// Whether pairs of blocks would be faster than single ones, if the epilogue permits them.
bool are_pairs_faster(std::span<const gemm> gemms, std::uint32_t rows, std::uint32_t sm_count) {
  const gemm& p = gemms.front();
  if (gemms.size() != 1 || rows <= 128 || p.segments != 4) return false;
  const std::uint32_t tiles = (p.matrix.outputs + 127) / 128;
  if (2 * tiles * ((rows + pair_columns - 1) / pair_columns) > sm_count) return false;
  return time_in_pairs(p) < fastest_width(gemms, rows, false, sm_count).time;
}

/// The time to write and read 1,000 partial sums, in that unit: some of them stay in the L2 cache.
constexpr std::uint64_t part_time = 9;

/// Whether second products are done sooner in one launch with the first ones than in their own. The first take some 0.3
/// us for 128 inputs and the second ones 3 us more, so the others of the launch must take longer than both: a tick of
/// 7.2B with 1, 8 and 32 rows is 2.5, 2.0 and 1.6 % shorter, one of 1.5B 5 to 10 % longer (docs/decisions, 58). With
/// more rows, in tiles, it gained nothing.
constexpr bool is_worth_turns(std::span<const gemm> gemms, std::uint32_t rows) {
  return rows <= few_rows_max && gemms.front().matrix.inputs >= 4096;
}

/// Of 128 outputs of a segment, for each tile of rows.
std::uint32_t count_tiles(std::span<const gemm> gemms) {
  std::uint32_t tiles = 0;
  for (const gemm& p : gemms) tiles += (p.matrix.outputs + 127) / 128 * p.segments;
  return tiles;
}

}  // namespace

bool hopper_splits(std::span<const gemm> gemms, std::uint32_t rows) {
  if (rows <= 128 || rows > split_rows_max) return rows <= 128;
  const auto sm_count = count_sms();
  if (!sm_count) return false;
  const auto launch = independent(gemms);
  std::uint64_t in_parts = fastest_width(launch, rows, true, *sm_count).time;
  for (const gemm& p : launch)
    if (p.segments > 1) in_parts += std::uint64_t{p.segments} * p.matrix.outputs * rows * part_time / 1000;
  // The destination may be one that pairs do not have; it is not compared, so that it does not affect the answer.
  const std::uint64_t whole = are_pairs_faster(launch, rows, *sm_count)
                                  ? time_in_pairs(launch.front())
                                  : fastest_width(launch, rows, false, *sm_count).time;
  return in_parts < whole;
}

bool hopper_pairs(std::span<const gemm> gemms, std::uint32_t rows, std::uint32_t sm_count) {
  const epilogue& how = gemms.front().how;
  return (how == epilogue{.to = destination::add_f32} || how == epilogue{.to = destination::f32}) &&
         are_pairs_faster(gemms, rows, sm_count);
}

// With up to 128 rows, first products are computed in tiles of 64: a block takes half as long as one with 128.
products_beside::products_beside(std::span<const gemm> gemms, std::uint32_t rows, std::uint32_t sm_count)
    : products(by_turn(gemms)) {
  const auto is_plain = [](const gemm& p) { return !is_quantised(p) && p.segments == 1; };
  if (rows <= 64 || products.first.empty() || products.any.empty() || products.second.empty()) return;
  if (!std::ranges::all_of(products.first, is_plain) || !std::ranges::all_of(products.second, is_plain)) return;
  first_columns = rows <= 128 ? 64 : fastest_width(products.first, rows, true, sm_count).columns;
  first_blocks = count_tiles(products.first) * ((rows + first_columns - 1) / first_columns);
}
bool products_beside::is_worth_it(std::uint32_t tiles, std::uint32_t sm_count) const {
  const auto in_turn = [&](std::uint32_t sms) { return (tiles + sms - 1) / sms; };
  return first_blocks > 0 && first_blocks < sm_count && in_turn(sm_count - first_blocks) == in_turn(sm_count);
}

result<void> multiply_first(stream_handle in, element type, const products_beside& all, std::uint32_t rows) {
  return launch_hopper_tiles<own_type>(all.first_columns == 64 ? takes::a_part : takes::parts, all.first_columns, in,
                                       type, all.products.first, rows,
                                       {.role = launch_role::first, .done = all.products.second.front().done});
}

result<void> multiply_second(stream_handle in, element type, const products_beside& all, std::uint32_t rows) {
  const auto second = all.products.second;
  std::uint32_t columns = 128;
  if (rows > 128) {
    const auto sm_count = count_sms();
    if (!sm_count) return sm_count.error();
    columns = fastest_width(second, rows, true, *sm_count).columns;
  }
  return launch_hopper_tiles<own_type>(
      takes::parts, columns, in, type, second, rows,
      {.role = launch_role::second, .done = second.front().done, .writers = all.first_blocks});
}

result<void> matmul_hopper(stream_handle in, element type, std::span<const gemm> gemms, const std::uint32_t*,
                           std::uint32_t rows_room) {
  check_gemms(type, gemms);
  check(type != element::f32);
  check(std::ranges::all_of(gemms, [](const gemm& p) { return rounds_inputs(p) || !is_quantised(p); }));
  const bool rounds = std::ranges::any_of(gemms, rounds_inputs);
  if (has_turns(gemms) && !is_worth_turns(gemms, rows_room)) {
    const auto sm_count = count_sms();
    if (!sm_count) return sm_count.error();
    const products_beside all(gemms, rows_room, *sm_count);
    if (rounds && rows_room <= 128 && all.is_worth_it(count_tiles(all.products.any), *sm_count))
      return multiply_beside(in, type, all, rows_room, [&](auto some) {
        return launch_fp8_tiles(takes::parts, 128, in, type, some, rows_room,
                                {.role = launch_role::middle, .sms_kept = all.first_blocks});
      });
    return in_two_launches(gemms, [&](auto some) { return matmul_hopper(in, type, some, nullptr, rows_room); });
  }
  bool segments = false, parts = false;
  for (const gemm& p : independent(gemms)) {
    segments |= p.segments > 1;
    parts |= p.how.to == destination::parts;
  }
  check(!segments || parts == hopper_splits(gemms, rows_room));
  if (rows_room <= few_rows_max)
    return rounds ? matmul_few_rows_fp8(in, type, gemms, rows_room) : matmul_few_rows(in, type, gemms, rows_room);
  const auto start = [&](takes work, std::uint32_t columns) {
    return rounds ? launch_fp8_tiles(work, columns, in, type, gemms, rows_room, {})
                  : launch_hopper_tiles<own_type>(work, columns, in, type, gemms, rows_room);
  };
  if (rows_room <= 64) return start(takes::a_part, 64);
  if (rows_room <= 128) return start(takes::parts, 128);
  const auto sm_count = count_sms();
  if (!sm_count) return sm_count.error();
  if (hopper_pairs(gemms, rows_room, *sm_count)) return start(takes::halves, pair_columns);
  const bool adds_up = segments && !parts;
  const std::uint32_t fastest = fastest_width(gemms, rows_room, !adds_up, *sm_count).columns;
  return start(adds_up ? takes::added_up_parts : takes::parts, fastest);
}

bool hopper_is_built() { return true; }

}  // namespace skein::kernels::gpu
