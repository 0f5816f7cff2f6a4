#include "kernels/gpu/gemm/mma/matmul_mma.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include "base/check.hpp"
#include "kernels/gpu/gemm/decode_rows.hpp"
#include "kernels/gpu/gemm/hopper/matmul_hopper.hpp"
#include "kernels/gpu/gemm/mma/kernel.cuh"
#include "kernels/gpu/gemm/mma/shapes.cuh"
#include "kernels/gpu/gemm/round_rows.hpp"

namespace skein::kernels::gpu {

namespace mma {

namespace {

/// What the shape of tiles is chosen by.
struct candidate {
  mma_shape shape;
  std::uint32_t outputs, columns;
  std::size_t shared_bytes;
  double time;  ///< of an SM for a tile by 64 inputs: in us on an H100, with 4,096 rows; see docs/performance.md
};
constexpr std::array<candidate, tile_names.size()> candidates{
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
  const bool coded = std::ranges::any_of(gemms, is_quantised);
  choice best{mma_shape::small, 0};
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const candidate& c = candidates[i];
    const double of_tile = profile.tile_us[i] > 0 ? profile.tile_us[i] : c.time;
    const bool wide = c.shape == mma_shape::wide;
    const std::size_t needed = coded && wide ? wide_tiles<takes::one>::shared_bytes : c.shared_bytes;
    if (needed > profile.shared_bytes_per_block) continue;
    if (coded && c.shape == mma_shape::broad) continue;          // not compiled
    if (work == takes::sum_of_all && c.columns > 128) continue;  // its sums would need twice the registers
    std::uint32_t tiles = 0, depth = 0;
    for (const gemm& p : gemms) {
      tiles += (p.matrix.outputs + c.outputs - 1) / c.outputs * (work == takes::one ? p.segments : 1);
      depth = std::max(depth, work == takes::one ? segment_tiles(p) : p.matrix.depth());
    }
    tiles *= (rows + c.columns - 1) / c.columns;
    const double time = (tiles + profile.sm_count - 1) / profile.sm_count * of_tile * depth;
    if (best.time == 0 || time < best.time) best = {c.shape, time};
  }
  return best;
}

/// Whether an SM has at most one block of a launch of up to 32 rows, whose ring is all that the SM has in flight. With
/// PDL, the next kernel needs the space.
bool wants_deep_rings(const tile_launch& what) {
  const auto is_first = [](const gemm& p) { return p.when == turn::first; };
  if (what.profile.has_pdl || what.work != takes::one || what.rows > 32 || std::ranges::any_of(what.gemms, is_first))
    return false;
  std::uint32_t blocks = 0;
  for (const gemm& p : what.gemms) blocks += (p.matrix.outputs + 63) / 64 * p.segments;
  return blocks <= what.profile.sm_count && rows_32_deep_tiles::shared_bytes <= what.profile.shared_bytes_per_block;
}

result<void> launch_plain(mma_shape shape, const tile_launch& what) {
  const auto start = [&]<typename t>() {
    return launch_tiles<t>(what, matmul_mma_kernel<half, t>, matmul_mma_kernel<bf16, t>);
  };
  if (wants_deep_rings(what)) {
    if (shape == mma_shape::rows_8) return start.template operator()<rows_8_deep_tiles>();
    if (shape == mma_shape::rows_16) return start.template operator()<rows_16_deep_tiles>();
    return start.template operator()<rows_32_deep_tiles>();
  }
  check(what.work != takes::sum_of_all || (shape != mma_shape::broad && shape != mma_shape::wide));
  const bool deep = wide_tiles<takes::one>::shared_bytes <= what.profile.shared_bytes_per_block;
  const auto start_wide = [&]<takes how>() {
    return deep ? start.template operator()<wide_tiles<how>>() : start.template operator()<wide_shallow_tiles<how>>();
  };
  if (shape == mma_shape::wide)
    return what.work == takes::one ? start_wide.template operator()<takes::one>()
                                   : start_wide.template operator()<takes::adds_each>();
  if (shape == mma_shape::broad)
    return deep ? start.template operator()<broad_tiles<takes::adds_each>>()
                : start.template operator()<broad_shallow_tiles<takes::adds_each>>();
  return start_tiles(shape, what.work, start);
}

/// The tiles of 128 outputs of a launch, for each tile of rows.
std::uint32_t output_tiles(const tile_launch& what) {
  std::uint32_t tiles = 0;
  for (const gemm& p : what.gemms) tiles += (p.matrix.outputs + 127) / 128 * (what.work == takes::one ? p.segments : 1);
  return tiles;
}

/// The width of tiles for launch_hopper: the time of a tile is that of matmul_hopper.cu.
std::uint32_t choose_columns(const tile_launch& what) {
  const std::uint32_t tiles = output_tiles(what);
  constexpr std::array columns = {128u, 192u, 256u};
  const auto possible =
      std::span(columns).first(what.work == takes::sum_of_all ? 2 : 3);  // of 256, sums need registers
  return *std::ranges::min_element(possible, {}, [&](std::uint32_t width) {
    const std::uint32_t all = tiles * ((what.rows + width - 1) / width), sms = what.profile.sm_count;
    return (all + sms - 1) / sms * (550 + 14 * width);
  });
}

/// With the instructions of sm_90a.
result<void> launch_by_warpgroups(const tile_launch& what) {
  const gemm& first = what.gemms.front();
  const std::uint32_t columns = choose_columns(what);
  if (!is_quantised(first)) return matmul_hopper(what.in, what.type, what.gemms, nullptr, what.rows);
  return with_code(first.matrix.format, [&]<weight_element code>() -> result<void> {
    if constexpr (code != weight_element::fp8) return launch_hopper<code>(columns, what);
    check(false);
    return {};
  });
}
/// Codes of fp8 are left to launch_coded: models have them here only in matrices of more than rounded_inputs_max
/// inputs.
bool can_use_warpgroups(const tile_launch& what) {
  const auto is_whole = [](const gemm& p) { return p.segments == 1; };
  const gemm& first = what.gemms.front();
  return what.profile.has_wgmma && hopper_is_built() && what.rows > few_columns &&
         (is_quantised(first) ? first.matrix.format.element != weight_element::fp8
                              : std::ranges::all_of(what.gemms, is_whole));
}

/// Whether quantised products with one kind of code, `others`, are launched beside low-rank pairs.
bool run_beside(const products_beside& all, const tile_launch& others) {
  const auto is_like_first = [&](const gemm& p) {
    return is_quantised(p) && p.matrix.format.element == others.gemms.front().matrix.format.element;
  };
  if (all.first_blocks == 0 || !std::ranges::all_of(others.gemms, is_like_first) || !can_use_warpgroups(others))
    return false;
  const std::uint32_t columns = choose_columns(others);
  return all.is_worth_it(output_tiles(others) * ((others.rows + columns - 1) / columns), others.profile.sm_count);
}

/// Whether launch_ringed computes launches of few rows with quantised products.
bool has_rings(const device_profile& profile) { return profile.has_wgmma && hopper_is_built(); }

/// The first products of low-rank pairs in a launch of few rows that launch_low_rank computes beside the others, or
/// none. Each of its blocks needs an SM, and NF4 with up to eight rows needs all SMs for decoding.
std::span<const gemm> first_apart(std::span<const gemm> gemms, std::uint32_t rows, const device_profile& profile) {
  const products_by_turn of = by_turn(gemms);
  if (!has_rings(profile) || !gemms.front().pdl_early_launch || of.second.empty()) return {};
  const auto is_plain = [](const gemm& p) { return !is_quantised(p) && p.segments == 1; };
  if (!std::ranges::all_of(of.first, is_plain) || low_rank_blocks(of.first) > profile.sm_count / 3) return {};
  const auto is_of = [&](weight_element code) {
    return std::ranges::any_of(of.any, [=](const gemm& p) { return p.matrix.format.element == code; });
  };
  const bool has_others = is_of(weight_element::fp8) || (rows <= 8 && is_of(weight_element::nf4));  // fp8: no rings
  return std::ranges::any_of(of.any, is_quantised) && !has_others ? of.first : std::span<const gemm>();
}

/// A launch of products of which the quantised ones have one kind of code, if any.
result<void> launch_alike(mma_shape shape, const tile_launch& what) {
  const auto coded = std::ranges::find_if(what.gemms, is_quantised);
  if (coded != what.gemms.end())
    return with_code(coded->matrix.format, [&]<weight_element code>() {
      if constexpr (code != weight_element::fp8)  // as in can_use_warpgroups
        if (what.work == takes::one && what.rows <= few_columns && has_rings(what.profile))
          return launch_ringed<code>(shape, what);
      return launch_coded<code>(shape, what);
    });
  return launch_plain(shape, what);
}

/// Products of one launch that may be launched together: of one kind of code, in launches of few rows beside the ones
/// that are not quantised, which come first.
class launch_groups {
  static constexpr weight_element codes[] = {weight_element::int8, weight_element::fp8, weight_element::int4,
                                             weight_element::nf4};

 public:
  /// `has_first`: the first GEMMs of low-rank pairs have a launch of their own, beside the first group.
  launch_groups(std::span<const gemm> gemms, bool few, bool has_first) {
    const auto take = [&](auto wanted) {
      for (const gemm& p : gemms)
        if (wanted(p)) sorted_[count_++] = p;
    };
    const auto take_waiting = [&] { take([](const gemm& p) { return p.when == turn::second; }); };
    take([](const gemm& p) { return !is_quantised(p) && p.when != turn::second; });
    bool open = few && (count_ > 0 || has_first);  // the first group may take quantised products, before waiting ones
    if (!open) take_waiting();
    if (count_ > 0) ends_[groups_++] = count_;
    for (const weight_element code : codes) {
      const std::size_t before = count_;
      take([&](const gemm& p) { return is_quantised(p) && p.matrix.format.element == code; });
      if (count_ == before) continue;
      if (open) take_waiting();
      if (!open || groups_ == 0) ++groups_;
      ends_[groups_ - 1] = count_, open = false;
    }
    if (has_first) sorted_.front().pdl_early_launch = true;
  }
  /// run(products, whether they are the first group) for each group.
  template <typename Run>
  result<void> for_each(Run run) const {
    for (std::size_t i = 0, begin = 0; i < groups_; begin = ends_[i++])
      if (result<void> done = run(std::span(sorted_).subspan(begin, ends_[i] - begin), i == 0); !done) return done;
    return {};
  }

 private:
  std::array<gemm, gemms_max> sorted_;
  std::array<std::size_t, 1 + std::size(codes)> ends_;
  std::size_t count_ = 0, groups_ = 0;
};

/// The products of a launch in which some round their inputs: those and the ones of 16 bits, which matmul_hopper
/// multiplies together, and those with codes. `others` are all if none rounds its inputs. In order.
struct divided_launch {
  std::array<gemm, gemms_max> of;
  std::span<const gemm> rounding, others;

  explicit divided_launch(std::span<const gemm> gemms) : others(gemms) {
    if (std::ranges::none_of(gemms, rounds_inputs)) return;
    check(gemms.size() <= gemms_max);
    std::ranges::copy(gemms, of.begin());
    const auto all = std::span(of).first(gemms.size());
    const auto has_codes = [](const gemm& p) { return is_quantised(p) && !rounds_inputs(p); };
    const auto end = std::stable_partition(all.begin(), all.end(), std::not_fn(has_codes));
    all.front().pdl_early_launch = gemms.front().pdl_early_launch;
    rounding = {all.begin(), end}, others = {end, all.end()};
  }
  divided_launch(const divided_launch&) = delete;
  divided_launch& operator=(const divided_launch&) = delete;
};

std::optional<mma_shape> imposed_shape;

mma_shape shape_of(std::span<const gemm> gemms, std::uint32_t rows, takes work, const device_profile& profile) {
  if (work == takes::one && rows <= few_columns)
    return rows <= 8    ? mma_shape::rows_8
           : rows <= 16 ? mma_shape::rows_16
           : rows <= 32 ? mma_shape::rows_32
                        : mma_shape::small;
  return imposed_shape ? *imposed_shape : choose_shape(gemms, rows, work, profile).shape;
}

}  // namespace

}  // namespace mma

std::optional<std::uint32_t> mma_tiles(mma_shape shape, const device_profile& profile, std::uint32_t outputs,
                                       std::uint32_t rows) {
  const auto c = std::ranges::find(mma::candidates, shape, &mma::candidate::shape);
  if (c == mma::candidates.end() || c->shared_bytes > profile.shared_bytes_per_block) return {};
  return (outputs + c->outputs - 1) / c->outputs * ((rows + c->columns - 1) / c->columns);
}

void impose_shape(std::optional<mma_shape> shape) { mma::imposed_shape = shape; }

namespace {

// For a launch of one product its consumer's reads of partial sums count as a tenth.
bool splits_others(std::span<const gemm> gemms, std::uint32_t rows) {
  if (rows <= 128 || rows > split_rows_max) return rows <= 128;
  const auto profile = current_profile();
  if (!profile) return false;
  const auto launch = independent(gemms);
  const auto whole = launch.size() == 1 ? mma::takes::adds_each : mma::takes::sum_of_all;
  return mma::choose_shape(launch, rows, mma::takes::one, *profile).time <
         0.9 * mma::choose_shape(launch, rows, whole, *profile).time;
}

/// What blocks of more than 64 rows do with segments.
mma::takes work_of(std::span<const gemm> gemms) {
  using mma::takes;
  const auto is_in_parts = [](const gemm& p) { return p.how.to == destination::parts; };
  if (std::ranges::all_of(gemms, [](const gemm& p) { return p.segments == 1; }) ||
      std::ranges::any_of(gemms, is_in_parts))
    return takes::one;
  return gemms.size() == 1 && gemms.front().how.to == destination::add_f32 ? takes::adds_each : takes::sum_of_all;
}

result<void> multiply_others(stream_handle in, element type, std::span<const gemm> gemms, std::uint32_t rows) {
  const bool few = rows <= mma::few_columns;
  const auto profile = current_profile();
  if (!profile) return profile.error();
  if (has_turns(gemms) && !few) {
    const products_beside all(gemms, rows, profile->sm_count);
    const mma::tile_launch others{
        in, type, all.products.any, rows, *profile, work_of(all.products.any), all.first_blocks};
    if (mma::run_beside(all, others))
      return multiply_beside(in, type, all, rows, [&](auto) { return mma::launch_by_warpgroups(others); });
    return in_two_launches(gemms, [&](auto some) { return multiply_others(in, type, some, rows); });
  }
  const mma::takes work = work_of(gemms);
  const auto run = [&](const mma::tile_launch& what) {
    return mma::launch_alike(mma::shape_of(what.gemms, rows, work, *profile), what);
  };
  const auto run_by_best = [&](const mma::tile_launch& what) {
    return mma::can_use_warpgroups(what) ? mma::launch_by_warpgroups(what) : run(what);
  };
  if (std::ranges::none_of(gemms, is_quantised)) return run_by_best({in, type, gemms, rows, *profile, work});
  const auto first = few ? mma::first_apart(gemms, rows, *profile) : std::span<const gemm>();
  if (!first.empty())
    if (auto done = mma::launch_low_rank(mma::shape_of(first, rows, work, *profile), {in, type, first, rows, *profile},
                                         gemms.back().done);
        !done)
      return done;
  const mma::launch_groups groups(gemms.subspan(first.size()), few, !first.empty());
  return groups.for_each([&](std::span<const gemm> some, bool is_front) {
    return run_by_best({in, type, some, rows, *profile, work, 0, is_front ? mma::low_rank_blocks(first) : 0});
  });
}

bool is_decoded_first(const gemm& p) { return p.decoded != nullptr; }

/// With the matrices that have space for it as rows of 16 bits.
result<void> multiply_decoded(stream_handle in, element type, std::span<const gemm> gemms,
                              const std::uint32_t* row_count, std::uint32_t rows) {
  std::array<gemm, gemms_max> decoded;
  std::array<decoding, gemms_max> matrices;
  std::size_t count = 0;
  std::ranges::copy(gemms, decoded.begin());
  const auto all = std::span(decoded).first(gemms.size());
  for (gemm& p : all) {
    if (!is_decoded_first(p)) continue;
    matrices[count++] = {p.matrix, p.decoded};
    p.matrix.data = p.decoded, p.matrix.format = row_format(type), p.decoded = nullptr;
  }
  if (auto done = decode_rows(in, type, std::span(matrices).first(count)); !done) return done;
  return matmul_mma(in, type, all, row_count, rows);
}

}  // namespace

bool mma_splits(std::span<const gemm> gemms, std::uint32_t rows) {
  const mma::divided_launch launch(gemms);
  return launch.rounding.empty() ? splits_others(gemms, rows) : hopper_splits(launch.rounding, rows);
}

result<void> matmul_mma(stream_handle in, element type, std::span<const gemm> gemms, const std::uint32_t* row_count,
                        std::uint32_t rows_room) {
  check_gemms(type, gemms);
  check(type != element::f32);
  const auto has_segments = [](const gemm& p) { return p.segments > 1; };
  const auto is_in_parts = [](const gemm& p) { return p.how.to == destination::parts; };
  check(std::ranges::none_of(gemms, has_segments) ||
        std::ranges::any_of(gemms, is_in_parts) == mma_splits(gemms, rows_room));
  if (std::ranges::any_of(gemms, is_decoded_first)) return multiply_decoded(in, type, gemms, row_count, rows_room);
  const mma::divided_launch launch(gemms);
  if (!launch.others.empty())
    if (auto done = multiply_others(in, type, launch.others, rows_room); !done) return done;
  if (launch.rounding.empty()) return {};
  if (auto done = round_rows(in, type, launch.rounding, row_count, rows_room); !done) return done;
  return matmul_hopper(in, type, launch.rounding, row_count, rows_room);
}

}  // namespace skein::kernels::gpu
